package memory_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

func partsOf(t *testing.T, run *record.Run) *memory.Parts {
	t.Helper()
	res := compare.Runs(run)
	if _, err := json.Marshal(res); err != nil {
		t.Fatal(err)
	}
	return res.Cells[0].Parts
}

// addsUp holds the parts against the whole, launch by launch.
func addsUp(t *testing.T, p *memory.Parts) {
	t.Helper()
	whole := p.Component(figure.MemoryIncrease)
	for i, v := range whole.Values {
		sum := 0.0
		for _, name := range []string{figure.ModelWeights, figure.KVCache, figure.Activations,
			figure.FrameworkOverhead, figure.MultiGPUOverhead} {
			if c := p.Component(name); c.Known() {
				if c.Values[i].Attempt != v.Attempt {
					t.Fatalf("%s: value %d is of attempt %d, not %d", name, i, c.Values[i].Attempt, v.Attempt)
				}
				sum += c.Values[i].Value
			}
		}
		if math.Abs(sum-v.Value) > 1e-6 {
			t.Errorf("launch %d: the parts come to %v, the increase is %v", i+1, sum, v.Value)
		}
	}
}

func TestPartsOfALogAndOfAFile(t *testing.T) {
	p := partsOf(t, comparetest.Logged(comparetest.Run(t, "server", comparetest.Native(6)), tells()))
	addsUp(t, p)
	for name, want := range map[string]float64{figure.ModelWeights: 8, figure.KVCache: 4, figure.KVCacheUsed: 1,
		figure.Activations: 3} {
		if c := p.Component(name); c.Center() != want || c.Method != evidence.EngineLog {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if p.DTypes.Activations != "f32" {
		t.Errorf("%+v", p.DTypes)
	}
	// Without a log file sizes and settings are used, and unknown parts stay in everything else.
	p = partsOf(t, comparetest.Run(t, "server", comparetest.Native(6)))
	addsUp(t, p)
	weights, cache, working := p.Component(figure.ModelWeights), p.Component(figure.KVCache),
		p.Component(figure.Activations)
	if weights.Center() != 4 || weights.Method != evidence.ByTensors || cache.Method != evidence.ByFormula ||
		cache.Center() != 2*2*2*32*4*256/float64(record.MiB) ||
		cache.Confidence != "medium" || working.Known() || working.Absent == "" || working.Method != "" {
		t.Errorf("%+v\n%+v\n%+v", weights, cache, working)
	}
	if f := p.Component(figure.FrameworkOverhead); !strings.Contains(f.How, "The difference includes activations") ||
		p.Confidence != "low" {
		t.Errorf("%s, confidence %s", f.How, p.Confidence)
	}
}

// Weights that an engine dequantises are not those of the file.
func TestPartsOfQuantisedWeights(t *testing.T) {
	e := comparetest.Native(1)
	e.Cell.Model.DType, e.Cell.Model.WeightsB = "q4_1", 655_360
	p := partsOf(t, comparetest.Run(t, "q", e)) // the policy says that it computes on f32
	if w := p.Component(figure.ModelWeights); w.Center() != 4 || w.Method != evidence.ByFormula || w.DType != "f32" ||
		p.DTypes.Scales != "" {
		t.Errorf("%+v, %+v", w, p.DTypes)
	}
	for stored, scales := range map[string]string{"q4_1": "f16", "q6_k": "f16", "q4f16_1": "f16", "q4f32_1": "f32",
		"iq4_xs": "f16", "mxfp4": "e8m0", "q0f32": "", "f16": "", "bf16": ""} {
		e.Info.Policy = map[string]string{"weights_dtype": stored, "kv_dtype": "q8_0"}
		p = partsOf(t, comparetest.Run(t, "q", e))
		if p.DTypes.Weights != stored || p.DTypes.Scales != scales || p.DTypes.KVCache != "q8_0" {
			t.Errorf("%s: %+v", stored, p.DTypes)
		}
	}
}

// A server of somebody else's has neither file nor log.
func TestUnknownParts(t *testing.T) {
	e := comparetest.Native(1)
	e.Cell.Model = record.Model{Name: "m", Format: "served"}
	e.Info.Policy = nil
	p := partsOf(t, comparetest.Run(t, "served", e))
	for _, name := range []string{figure.ModelWeights, figure.KVCache, figure.KVCacheUsed, figure.Activations,
		figure.FrameworkOverhead} {
		if c := p.Component(name); c.Known() || c.Absent == "" || c.Confidence != "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if c := p.Component(figure.MemoryIncrease); !c.Known() {
		t.Errorf("%+v", c)
	}
}

// What is left below zero is shown and said.
func TestNegativeRemainder(t *testing.T) {
	p := partsOf(t, comparetest.Logged(comparetest.Run(t, "server", comparetest.Native(2)), map[string]float64{
		"weights_bytes": 400 << 20, "kv_reserved_bytes": 1 << 20, "kv_used_bytes": 1 << 20}))
	addsUp(t, p)
	if f := p.Component(figure.FrameworkOverhead); f.Center() >= 0 || !strings.Contains(f.Words, "is negative") ||
		len(p.Notes) != 1 || p.Notes[0] != f.Words {
		t.Errorf("%v %q %q", f.Center(), f.Words, p.Notes)
	}
}

// onGPU gives every launch the readings of a GPU driver.
func onGPU(run *record.Run, role string, mib map[record.Phase]float64) *record.Run {
	for _, a := range run.Attempts {
		for id, name := range map[int]string{91: "nvml_process", 92: "drm_fdinfo"} { // two drivers report one process
			a.Sources[id] = record.Source{Role: role, Method: name, PID: 4002, Blind: "what it hides"}
		}
		for phase, v := range mib {
			if span, ok := a.Phase(phase); ok {
				for id, share := range map[int]float64{91: 1, 92: 0.5} {
					a.Metrics = append(a.Metrics,
						record.MetricRow{Source: id, NS: span.EndNS - 1000, Name: "gpu_memory_bytes",
							Value: v * share * record.MiB},
						record.MetricRow{Source: id, NS: span.EndNS - 1000, Name: "gpu0.gpu_memory_bytes",
							Value: v * share * record.MiB})
				}
			}
		}
	}
	return run
}

// On a GPU the ledger's bytes lie in its memory: PSS says nothing of them.
func TestPartsOnAGPU(t *testing.T) {
	e := comparetest.Measured(comparetest.Browser(6), comparetest.Page())
	e.Device = record.Device{Class: record.GPU, Name: "Example GPU"}
	p := partsOf(t, comparetest.Run(t, "gpu", e))
	if c := p.Component(figure.FrameworkOverhead); c.Known() || !strings.Contains(c.Absent, "no driver reports") {
		t.Errorf("a difference from PSS: %+v", c)
	}
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "differences use GPU memory") {
		t.Errorf("%q", p.Notes)
	}
	run := onGPU(comparetest.Run(t, "gpu", e), "gpu-process",
		map[record.Phase]float64{record.Baseline: 50, record.Load: 90, record.Measure: 80})
	p = partsOf(t, run)
	addsUp(t, p)
	if c := p.Component(figure.MemoryIncrease); c.Center() != 40 || c.N != 6 || c.Confidence != "high" ||
		c.Method != "gpu_memory_of_processes" {
		t.Errorf("%+v", c)
	}
	if c := p.Component(figure.TotalMemory); c.Center() != 90 || p.Of != "GPU memory of its processes" {
		t.Errorf("%+v of %s", c, p.Of)
	}
	if len(p.Notes) != 2 || !strings.Contains(p.Notes[1], "grew by") {
		t.Errorf("%q", p.Notes)
	}
	// Layers on both: neither whole holds them all.
	n := comparetest.Native(1)
	n.Device, n.Info.Layers = e.Device, &record.Layers{GPU: 10, All: 33}
	p = partsOf(t, onGPU(comparetest.Run(t, "part", n), "server", map[record.Phase]float64{record.Measure: 80}))
	if c := p.Component(figure.FrameworkOverhead); c.Known() ||
		!strings.Contains(strings.Join(p.Notes, " "), "10 of 33 layers") {
		t.Errorf("%+v %q", c, p.Notes)
	}
	// So it is where Ollama says that less than the whole of a model is there.
	for vram, left := range map[string]bool{"300000000": false, "500000000": true} {
		n.Info.Policy, n.Info.Layers = map[string]string{"weights_dtype": "f32"}, nil
		n.Device.Detail = map[string]string{"size_bytes": "500000000", "size_vram_bytes": vram}
		p = partsOf(t, onGPU(comparetest.Run(t, "ollama", n), "runner", map[record.Phase]float64{record.Measure: 80}))
		if c := p.Component(figure.FrameworkOverhead); c.Known() != left ||
			left == strings.Contains(strings.Join(p.Notes, " "), "286.1 of the model's 476.8 MiB") {
			t.Errorf("%s: %+v %q", vram, c, p.Notes)
		}
	}
}

// With all layers on a GPU llama.cpp keeps the table of embeddings in the host's memory: nothing is taken off the GPU's
// for it.
func TestHostPartsAreNotSubtractedFromGPU(t *testing.T) {
	n := comparetest.Native(2)
	n.Device, n.Info.Layers = record.Device{Class: record.GPU, Name: "CUDA0 (Example)"},
		&record.Layers{GPU: 33, All: 33}
	log := map[string]float64{"weights_bytes": 24 << 20, "weights.CUDA0_bytes": 20 << 20,
		"weights.CPU_Mapped_bytes": 4 << 20, "kv_reserved_bytes": 8 << 20,
		"kv_reserved.CUDA0_bytes": 8 << 20, "compute_bytes": 7 << 20, "compute.CUDA0_bytes": 5 << 20,
		"compute.CUDA_Host_bytes": 2 << 20, "output_bytes": 1 << 20,
		"output.CUDA_Host_bytes": 1 << 20, "workspaces_bytes": 8 << 20, "recurrent_state.CPU_bytes": 1 << 20}
	p := partsOf(t, onGPU(comparetest.Logged(comparetest.Run(t, "full", n), log), "server",
		map[record.Phase]float64{record.Measure: 80}))
	if c := p.Component(figure.FrameworkOverhead); c.Center() != 80-20-8-5 ||
		!strings.Contains(c.How, "The difference includes components in host memory") ||
		!strings.Contains(strings.Join(p.Notes, " "), " 7.000 MiB of the components are in host memory") {
		t.Errorf("%v %q %q", c.Values, c.How, p.Notes)
	}
}

// Repetitions in one launch are one value of memory, of the breakdown's as well.
func TestReusedLaunchesHaveOneBreakdown(t *testing.T) {
	e := comparetest.Measured(comparetest.Browser(4), comparetest.Page())
	e.Reused, e.Cell.Reused = true, true
	for _, warmup := range []bool{false, true} {
		e.Warmup = warmup
		run := comparetest.Run(t, "reused", e)
		last := run.Attempts[len(run.Attempts)-1]
		part(t, last, record.Measure, "workspaces_bytes", 1<<20)
		c := compare.Runs(run).Cells[0]
		if c.Launches.Counted != 4 || c.Launches.Opened != 1 {
			t.Fatalf("%+v", c.Launches)
		}
		for _, list := range [][]evidence.Figure{c.Memory.Load, c.Memory.Measure} {
			for _, name := range []string{figure.Ledger, figure.Weights, figure.Workspaces, figure.TotalPSS} {
				if f := evidence.Find(list, name); f.N != 1 || f.Values[0].Attempt != last.Launch().ID {
					t.Errorf("warm-up %v: %s has %+v", warmup, name, f.Values)
				}
			}
		}
		if f := evidence.Find(c.Memory.Measure, figure.Workspaces); f.Center() != (1_100_300+1<<20)/float64(
			record.MiB) {
			t.Errorf("%v is not what the last repetition left", f.Center())
		}
		if f := evidence.Find(c.Memory.Retained, figure.JSHeap); f.N != 1 {
			t.Errorf("%+v", f)
		}
		for _, f := range c.Memory.Peaks[0].Phases {
			if f.N != 1 {
				t.Errorf("peaks in %s: %+v", f.Name, f.Values)
			}
		}
		addsUp(t, c.Parts)
	}
}

func TestOriginsOfComponents(t *testing.T) {
	logged := comparetest.Logged(comparetest.Run(t, "log", comparetest.Measured(comparetest.Native(6), nil)), tells())
	const m, r, c = record.OriginMeasured, record.OriginReported, record.OriginCalculated
	for name, want := range map[string]struct {
		parts                                                             *memory.Parts
		weights, reserved, filled, activations, framework, increase, peak record.Origin
	}{
		"ledger": {partsOf(t, measured(t, 6)), m, m, c, m, c, m, m},
		"log":    {partsOf(t, logged), r, r, c, r, c, m, m},
		"file": {partsOf(t, comparetest.Run(t, "file", comparetest.Native(6))), record.OriginFileSize, c, c, "", c, m,
			m},
	} {
		for component, origin := range map[string]record.Origin{figure.ModelWeights: want.weights,
			figure.KVCache:     want.reserved,
			figure.KVCacheUsed: want.filled, figure.Activations: want.activations,
			figure.FrameworkOverhead: want.framework,
			figure.MemoryIncrease:    want.increase, figure.TotalMemory: want.peak} {
			f := want.parts.Component(component)
			if f.Origin != origin {
				t.Errorf("%s: %s is %q, want %q", name, component, f.Origin, origin)
			}
			arithmetic := origin == record.OriginFileSize || origin == c && component != figure.FrameworkOverhead
			if f.Known() && (f.Interval == nil) != arithmetic {
				t.Errorf("%s: %s, which is %s: interval %+v", name, component, origin, f.Interval)
			}
		}
	}
}

// Without a baseline, without a ledger, and without any reading there is nothing to part.
func TestBrowserMemoryNeedsReadings(t *testing.T) {
	for name, change := range map[string]func(*record.Attempt, *record.MetricRow){
		"no baseline": func(a *record.Attempt, m *record.MetricRow) {
			if m.Edge == record.Baseline && a.Sources[m.Source].Method == record.MethodSmapsRollup {
				m.Edge = record.Idle
			}
		},
		"no ledger": func(_ *record.Attempt, m *record.MetricRow) {
			m.Name = strings.Replace(m.Name, "live_bytes", "other_bytes", 1)
		},
	} {
		run := comparetest.Run(t, "mapped", comparetest.Mapped(
			comparetest.Measured(comparetest.Browser(6), comparetest.Page())))
		for _, a := range run.Attempts {
			for i := range a.Metrics {
				change(a, &a.Metrics[i])
			}
		}
		p := partsOf(t, run)
		if len(p.Beyond) != 0 || p.Shown(figure.FrameworkOverhead).Name != figure.FrameworkOverhead {
			t.Errorf("%s: %+v", name, p.Beyond)
		}
	}
	if p := partsOf(t, measured(t, 6)); p.Beyond != nil {
		t.Errorf("%+v", p.Beyond)
	}
}

// Where WebAssembly computes, the model is in the page's memory, and what remains there is the page's.
func TestModelInWebAssemblyIsInThePage(t *testing.T) {
	e := comparetest.Mapped(comparetest.Browser(6))
	e.Device, e.Info.Library = comparetest.Native(6).Device, nil
	p := partsOf(t, comparetest.Logged(comparetest.Run(t, "wasm", e), tells()))
	addsUp(t, p)
	model := 0.0
	for _, name := range []string{figure.ModelWeights, figure.KVCache, figure.Activations} {
		model += p.Component(name).Center()
	}
	var renderer comparetest.Process
	for _, one := range e.Processes {
		if one.Role == "renderer" {
			renderer = one
		}
	}
	grown := renderer.Loaded - renderer.Before + 1 + 0.01*float64(p.Launch)
	if heaps := p.Component(figure.PageHeaps).Value(p.Launch); model < 10 || math.Abs(heaps-(grown-model)) > 0.001 {
		t.Errorf("the page grew by %g MiB, of which the model's are %g, and its own %g", grown, model, heaps)
	}
	if early := p.Component(figure.NotYetThere); !early.Known() || early.Center() != 0 {
		t.Errorf("a correction without WebGPU: %+v", early)
	}
}

// The prediction of everything but the model is compared with the sum of its parts, and named so.
func TestBrowserOverheadIsPredicted(t *testing.T) {
	e := comparetest.Mapped(comparetest.Measured(comparetest.Browser(6), comparetest.Page()))
	e.Prediction = prediction(comparetest.Predict(figure.FrameworkOverhead, 10, 20, 30, ""))
	c := compare.Runs(comparetest.Run(t, "mapped", e)).Cells[0]
	f, ok := c.Prediction.Part(figure.FrameworkOverhead)
	if !ok || f.Title != "growth of the browser itself and everything else" ||
		*f.Measured != c.Parts.Component(figure.FrameworkOverhead).Value(c.Parts.Launch) {
		t.Errorf("%+v", f)
	}
	words := strings.Join(c.Prediction.Recommendations, " ")
	if !strings.Contains(words, "from the steps of the load") {
		t.Error(words)
	}
}

// Each dtype of a KV cache has its size, with the scales of its blocks.
func TestKVCacheDTypes(t *testing.T) {
	e := comparetest.Native(1)
	numbers := 2.0 * float64(e.Cell.Model.Layers*e.Cell.Model.KVHeads*e.Cell.Model.HeadDim)
	for dtype, bits := range map[string]float64{"f32": 32, "float16": 16, "bfloat16": 16, "q8_0": 8.5, "q5_1": 6,
		"q5_0": 5.5, "q4_1": 5, "q4_0": 4.5, "iq4_nl": 4.5, "fp8_e5m2": 8, "int3": 0} {
		e.Info.Policy = map[string]string{"kv_dtype": dtype}
		c := compare.Runs(comparetest.Run(t, "kv", e)).Cells[0].Footprint()
		if got := c.TokenBytes(); got != numbers*bits/8 {
			t.Errorf("%s: %g bytes per token, want %g", dtype, got, numbers*bits/8)
		}
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{{"q5_1", "q4_1", false}, {"float32", "f32", true}, {"bf16", "f16", true}, {"int3", "int4", false},
		{"int3", "int3", true}, {"", "q8_0", false}} {
		if memory.SameDType(c.a, c.b) != c.same {
			t.Errorf("SameDType(%q, %q) is %t", c.a, c.b, !c.same)
		}
	}
}

// The launch that is shown is the one closest to the median: of two it is one, and its whole is the launch's.
func TestShownLaunchIsClosestToTheMedian(t *testing.T) {
	for launches := range 9 {
		e := comparetest.Mapped(comparetest.Measured(comparetest.Browser(launches+1), comparetest.Page()))
		c := compare.Runs(comparetest.Run(t, "shown", e)).Cells[0]
		peak := c.Figure(figure.PeakPSS)
		is := math.Abs(peak.Value(c.Parts.Launch) - peak.Center())
		for _, v := range peak.Values {
			if off := math.Abs(v.Value - peak.Center()); off < is-1e-9 {
				t.Errorf("%d launches: %v is closer to the median than %v by launch %d", launches+1, off, is, c.Parts.Launch)
			}
		}
		total := c.Parts.Component(figure.TotalMemory).OfLaunch
		if c.Representative != c.Parts.Launch || *total != peak.Value(c.Parts.Launch) {
			t.Errorf("%d launches: launch %d with %v MiB, the timeline's is %d", launches+1, c.Parts.Launch, *total,
				c.Representative)
		}
	}
}
