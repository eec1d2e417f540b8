//go:build !race

package reports_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// onGPU has an engine compute on a GPU.
func onGPU(e comparetest.Engine, id int, engine string, policy map[string]string,
	meters ...comparetest.Meter) comparetest.Engine {
	e.Cell.ID, e.Cell.Engine, e.Info.Name, e.Vary = id, engine, engine, 0.04
	e.Device = record.Device{Class: record.GPU, Name: "CUDA0 (NVIDIA H200)"}
	e.Info.Policy = policy
	e.Meters = append(e.Meters, meters...)
	return e
}

// holds is what a driver tells of a process. It grows with the load, wavers, and now and then isn't told.
func holds(role, method string, pid int, every time.Duration, base, size float64, devices ...string) comparetest.Meter {
	return comparetest.Meter{Source: record.Source{Role: role, Method: method, PID: pid, Start: uint64(90000 + pid),
		Every: every, Sees: "what it holds", Blind: "the rest"},
		Read: func(p record.Phase, attempt int, at time.Duration) []record.Value {
			now := base
			if p != record.Baseline {
				now += size*(1+0.01*float64(attempt%7)) + size/9*math.Sin(5*at.Seconds()+float64(pid))
			}
			if p == record.Load {
				now += size / 4 // copies on the way
			}
			if turn := int(at/every) + pid; now == 0 || turn%11 == 0 {
				return nil // not listed
			}
			bytes := math.Round(now * (1 << 20))
			// the other is not known, so that there is no sum
			if turn := int(at/every) + pid; len(devices) > 1 && turn%7 == 0 {
				return []record.Value{{Name: devices[0] + ".gpu_memory_bytes", Value: 2 * bytes}}
			}
			var out []record.Value
			for _, d := range devices {
				out = append(out, record.Value{Name: d + ".gpu_memory_bytes", Value: bytes / float64(len(devices))})
			}
			return append(out, record.Value{Name: "gpu_memory_bytes", Value: bytes})
		}}
}

// until is a process that ends, and since is one that begins, so long into a run.
func until(m comparetest.Meter, end time.Duration) comparetest.Meter {
	read := m.Read
	m.Read = func(p record.Phase, attempt int, at time.Duration) []record.Value {
		if at%(12*time.Second) > end {
			return nil
		}
		return read(p, attempt, at)
	}
	return m
}

// llamaLog is llama.cpp's log of a model that lies on a GPU, but for what it leaves in the machine's memory.
func llamaLog(method string, detailed bool) comparetest.Meter {
	return comparetest.Meter{Source: record.Source{Role: "server", Method: method, Sees: "sizes",
		Blind: "what is resident"},
		Read: func(p record.Phase, attempt int, _ time.Duration) []record.Value {
			if p == record.Baseline || p == record.Unload {
				return nil
			}
			mib := func(name string, v float64) record.Value {
				return record.Value{Name: name, Value: math.Round(v * (1 << 20))}
			}
			out := []record.Value{mib("weights_bytes", 120), mib("kv_reserved_bytes", 8), mib("compute_bytes", 33),
				mib("output_bytes", 0.19), mib("workspaces_bytes", 33.19),
				{Name: "kv_cells_count", Value: 512}}
			if detailed {
				out = append(out, mib("weights.CUDA0_bytes", 100), mib("weights.CPU_Mapped_bytes", 20),
					mib("kv_reserved.CUDA0_bytes", 8), mib("compute.CUDA0_bytes", 30),
					mib("compute.CUDA_Host_bytes", 3), mib("output.CUDA_Host_bytes", 0.19))
			}
			if p != record.Load {
				out = append(out, mib("kv_used_bytes", 1+float64(attempt)/64))
			}
			return out
		}}
}

// apiPS is what Ollama says of a model's size.
func apiPS(size, vram float64) comparetest.Meter {
	return comparetest.Meter{Source: record.Source{Role: "server", Method: "api_ps", Waits: true, Sees: "its estimate",
		Blind: "what is taken"},
		Read: func(p record.Phase, _ int, _ time.Duration) []record.Value {
			if p == record.Baseline || p == record.Unload {
				return nil
			}
			return []record.Value{{Name: "size_bytes", Value: size}, {Name: "size_vram_bytes", Value: vram}}
		}}
}

const quarter = 250 * time.Millisecond

// onGPUs are engines whose weights and KV cache lie on GPUs, each in another way.
func onGPUs(launches int) []comparetest.Engine {
	policy := func(layers string) map[string]string {
		return map[string]string{"weights_dtype": "f32", "kv_dtype": "f16", "context": "512", "mmap": "on",
			"gpu_layers": layers, "ubatch": "512"}
	}
	part, native := comparetest.Foretell, comparetest.Native(launches)
	llama := onGPU(native, 11, "llamacpp", policy("33 of 33"), llamaLog("engine_log", true),
		holds("server", "nvml_process", 4000, quarter, 0, 640, "gpu0"))
	llama.Prediction = &record.Prediction{Source: "gguf", Setup: map[string]string{"context": "512"},
		Parts: []record.Foretold{part(figure.ModelWeights, 118, 118, 118, "f32"),
			part(figure.KVCache, 8, 8, 8, "f16"), part(figure.Activations, 5, 10, 20, "f32"),
			part(figure.FrameworkOverhead, 10, 20, 30, ""),
			part(figure.MemoryIncrease, 200, 230, 260, ""), part(figure.TotalMemory, 200, 240, 280, "")}}
	some := onGPU(native, 12, "llamacpp", policy("10 of 33"), llamaLog("engine_log", true),
		holds("server", "nvml_process", 4000, quarter, 0, 70, "gpu0"))
	page := onGPU(comparetest.Measured(comparetest.Browser(launches), comparetest.Page()), 13, "webllm",
		map[string]string{"kv_dtype": "f32", "weights_dtype": "f32", "context": "256"},
		holds("gpu-process", "nvml_process", 4002, quarter, 50, 90, "gpu0"),
		holds("gpu-process", "drm_fdinfo", 4002, 2*quarter, 40, 110, "gpu0"),
		holds("renderer", "drm_fdinfo", 4001, 2*quarter, 0, 3, "gpu0"),
		until(holds("utility", "nvml_process", 4003, quarter, 300, 0, "gpu0"), 3*time.Second))
	page.Prediction = &record.Prediction{Source: "webllm-package",
		Parts: []record.Foretold{part(figure.ModelWeights, 4.004, 4.004, 4.004, "f32"),
			part(figure.KVCacheUsed, 0.06, 0.06, 0.07, "f32"), part(figure.MultiGPUOverhead, 0, 0, 0, ""),
			part(figure.MemoryIncrease, 60, 90, 130, "")}}
	served := comparetest.Served(launches)
	served.Cell.Model.WeightsB, served.Cell.Model.Parameters = 0, 0
	vllm := onGPU(served, 14, "vllm", map[string]string{"kv_dtype": "fp8_e4m3"},
		holds("server", "nvml_process", 4000, quarter, 0, 500, "gpu0"),
		holds("worker", "nvml_process", 5001, quarter, 0, 9000, "gpu0", "gpu1"),
		holds("worker", "nvml_process", 5002, quarter, 0, 9100, "gpu1"))
	ollama := onGPU(native, 15, "ollama",
		map[string]string{"weights_dtype": "q8_0", "kv_dtype": "not told", "context": "2048"}, apiPS(5e8, 5e8),
		llamaLog("engine_log", false),
		holds("runner", "nvml_process", 4100, quarter, 0, 400, "gpu0.mig0"))
	half := onGPU(native, 17, "ollama-half", ollama.Info.Policy, apiPS(5e8, 3e8), llamaLog("engine_log", false),
		holds("runner", "nvml_process", 4100, quarter, 0, 200, "gpu0"))
	half.Device.Detail = map[string]string{"size_bytes": "500000000", "size_vram_bytes": "300000000"}
	ollama.Device.Detail = map[string]string{"size_bytes": "500000000", "size_vram_bytes": "500000000"}
	hidden := onGPU(native, 16, "exec", map[string]string{"weights_dtype": "f32", "kv_dtype": "bfloat16"})
	hidden.Cell.Model.DType = "q4_0"
	unseen := onGPU(comparetest.Measured(comparetest.Browser(launches), comparetest.Page()), 18, "webllm",
		page.Info.Policy)
	return []comparetest.Engine{llama, some, page, vllm, ollama, hidden, half, unseen}
}

func TestMemoryOnGPUsIsThatOfTheRecord(t *testing.T) {
	for name, change := range map[string]func(e *comparetest.Engine){
		"launches": func(*comparetest.Engine) {},
		"failed, cut and warm-up launches": func(e *comparetest.Engine) {
			e.Warmup, e.Failing, e.Cut = true, map[int]record.Class{3: record.DeviceLost}, 5
		},
		"launches that are used again": func(e *comparetest.Engine) { e.Reused, e.Cell.Reused = true, true },
		"a warm-up's launch is used again": func(e *comparetest.Engine) {
			e.Reused, e.Cell.Reused, e.Warmup = true,
				true, true
		},
		"nobody may read PSS":               func(e *comparetest.Engine) { e.NoPSS = true },
		"readings that are a moment apart ": func(e *comparetest.Engine) { later(e, 700*time.Microsecond) },
	} {
		t.Run(name, func(t *testing.T) {
			engines := onGPUs(7)
			for i := range engines {
				change(&engines[i])
			}
			res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", engines...))
			for i, known := range []bool{true, false, true, false, true, false, false, false} {
				p := res.Cells[i].Parts
				if p == nil || p.Of != "GPU memory of its processes" {
					t.Fatalf("%s: the whole is %+v", res.Cells[i].Label, p)
				}
				if f := p.Component(figure.FrameworkOverhead); f.Known() != known {
					t.Errorf("%s: what is left is %v (%s)", res.Cells[i].Label, f.Values, f.Absent)
				}
			}
		})
	}
}

// later has every other process told of so long behind the one before.
func later(e *comparetest.Engine, by time.Duration) {
	e.Meters = slices.Clone(e.Meters)
	for i := range e.Meters {
		if i%2 == 1 && e.Meters[i].Source.Every > 0 {
			e.Meters[i].Source.Every -= by
		}
	}
}

// openers makes others of the lines of those attempts that opened launches.
func openers(t *testing.T, dir, is, becomes string) string {
	path := filepath.Join(dir, "journal.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	opened, changed := map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		_, attempt, _ := strings.Cut(line, `"attempt":`)
		attempt, rest, _ := strings.Cut(attempt, ",")
		if strings.HasPrefix(rest, `"begin":`) && !strings.Contains(rest, `"opened_by":`) {
			opened[attempt] = true
		}
		if opened[attempt] && strings.Contains(rest, is) {
			line, changed = strings.Replace(line, is, becomes, 1), changed+1
		}
		lines = append(lines, line)
	}
	if changed != len(opened) || changed == 0 {
		t.Fatalf("of %d that opened launches %d have %s", len(opened), changed, is)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What a launch held when it was loaded is its own where a warm-up opened it; where what opened it failed, that is no
// peak of the launch.
func TestPeaksOnGPUsOfLaunchesThatOthersOpened(t *testing.T) {
	most := map[string]float64{}
	for status, change := range map[string][2]string{"ok": {`"begin":{`, `"begin":{"warmup":true,`},
		"failed": {`"end":{"status":"ok"`, `"end":{"status":"failed"`}} {
		engines := onGPUs(3)
		for i := range engines {
			engines[i].Reused, engines[i].Cell.Reused = true, true
		}
		res := reportAgain(t, openers(t, comparetest.Write(t, t.TempDir(), "folder", engines...), change[0], change[1]))
		most[status] = res.Cells[0].Parts.Component(figure.TotalMemory).Center()
	}
	if most["ok"] < most["failed"]+50 {
		t.Errorf("%v", most)
	}
}

func TestWrongMemoryOnGPUsIsFound(t *testing.T) {
	folder := workedOut(t, comparetest.Write(t, t.TempDir(), "folder", onGPUs(6)...), compare.Defaults())
	component := func(r *compare.Result, cell int, name string) *compare.Component {
		all := r.Cells[cell].Parts.Components
		return &all[slices.IndexFunc(all, func(c compare.Component) bool { return c.Name == name })]
	}
	forecast := func(r *compare.Result, cell int, name string) *compare.Foretold {
		all := r.Cells[cell].Forecast.Parts
		return &all[slices.IndexFunc(all, func(f compare.Foretold) bool { return f.Name == name })]
	}
	more := func(v *float64) { *v *= 1.001 }
	known := func(c *compare.Component, f compare.Figure) {
		c.Figure.Values, c.Median, c.Interval, c.N = f.Values, f.Median, f.Interval, f.N
	}
	for says, change := range map[string]func(*compare.Result){
		"llamacpp: component total, median": func(
			r *compare.Result) {
			more(component(r, 0, figure.TotalMemory).Median)
		},
		"llamacpp: component increase, launch": func(
			r *compare.Result) {
			more(&component(r, 0, figure.MemoryIncrease).Values[1].Value)
		},
		"llamacpp: component framework_overhead, upper": func(
			r *compare.Result) {
			more(&component(r, 0, figure.FrameworkOverhead).Interval.Hi)
		},
		"llamacpp: component model_weights, method": func(
			r *compare.Result) {
			component(r, 0, figure.ModelWeights).Method = compare.ByTensors
		},
		"llamacpp: component model_weights, origin": func(
			r *compare.Result) {
			component(r, 0, figure.ModelWeights).Origin = record.OriginMeasured
		},
		"llamacpp: component activations, confidence": func(
			r *compare.Result) {
			component(r, 0, figure.Activations).Confidence = compare.HighConfidence
		},
		"llamacpp: confidence is": func(
			r *compare.Result) {
			r.Cells[0].Parts.Confidence = compare.LowConfidence
		},
		"what the whole is of is": func(r *compare.Result) { r.Cells[0].Parts.Of = "total PSS" },
		"component framework_overhead: the report has 6 values": func(r *compare.Result) {
			known(component(r, 1, figure.FrameworkOverhead), component(r, 0, figure.FrameworkOverhead).Figure)
		},
		"webllm: component kv_cache_used, median": func(
			r *compare.Result) {
			more(component(r, 2, figure.KVCacheUsed).Median)
		},
		"webllm: component multi_gpu_overhead: the report has 0": func(
			r *compare.Result) {
			known(component(r, 2, figure.MultiGPUOverhead), compare.Figure{})
		},
		"vllm: component multi_gpu_overhead: the report has 6": func(r *compare.Result) {
			known(component(r, 3, figure.MultiGPUOverhead), component(r, 0, figure.MultiGPUOverhead).Figure)
		},
		"vllm: component increase, lower end": func(
			r *compare.Result) {
			more(&component(r, 3, figure.MemoryIncrease).Interval.Lo)
		},
		"exec: component total: the report has 6": func(r *compare.Result) {
			known(component(r, 5, figure.TotalMemory), component(r, 0, figure.TotalMemory).Figure)
		},
		"ollama-half: component framework_overhead: the report has 6": func(r *compare.Result) {
			known(component(r, 6, figure.FrameworkOverhead), component(r, 0, figure.FrameworkOverhead).Figure)
		},
		"forecast of increase: measured is": func(r *compare.Result) {
			forecast(r, 0, figure.MemoryIncrease).Measured = component(r, 0, figure.MemoryIncrease).Median
		},
		"forecast of framework_overhead: measured is": func(r *compare.Result) {
			forecast(r, 0, figure.FrameworkOverhead).Measured = component(r, 0, figure.FrameworkOverhead).Median
		},
		"llamacpp: forecast of model_weights, error is": func(
			r *compare.Result) {
			more(forecast(r, 0, figure.ModelWeights).Error)
		},
		"forecast of activations: in range": func(
			r *compare.Result) {
			f := forecast(r, 0, figure.Activations).Within
			*f = !*f
		},
		"webllm: forecast of kv_cache_used: measured is": func(r *compare.Result) {
			forecast(r, 2, figure.KVCacheUsed).Measured = component(r, 2, figure.KVCacheUsed).Median
		},
		"webllm: forecast of increase is": func(
			r *compare.Result) {
			more(forecast(r, 2, figure.MemoryIncrease).High)
		},
	} {
		folder.finds(t, says, change, false)
	}
}
