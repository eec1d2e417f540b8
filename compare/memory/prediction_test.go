package memory_test

import (
	"encoding/json"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/memory"
	"llmparity/compare/validate"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// tells is what a server's log says of its buffers.
func tells() map[string]float64 {
	return map[string]float64{"weights_bytes": 8 << 20, "kv_reserved_bytes": 4 << 20, "kv_used_bytes": 1 << 20,
		"workspaces_bytes": 3 << 20}
}

func prediction(parts ...record.Predicted) *record.Prediction {
	return &record.Prediction{Source: "gguf",
		Setup: map[string]string{"context": "256", "kv_dtype": "f32", "ubatch": "512"}, Parts: parts,
		Notes: []string{"a note"}}
}

func predicted(t *testing.T, e comparetest.Engine) *memory.Prediction {
	t.Helper()
	res := compare.Runs(comparetest.Logged(comparetest.Run(t, "predicted", e), tells()))
	if _, err := json.Marshal(res); err != nil {
		t.Fatal(err)
	}
	return res.Cells[0].Prediction
}

// Growth of GPU memory is not compared with a prediction for host memory.
func TestHostPredictionIsNotComparedWithGPUMemory(t *testing.T) {
	e := comparetest.Measured(comparetest.Browser(2), comparetest.Page())
	e.Device = record.Device{Class: record.GPU, Name: "Example GPU"}
	e.Prediction = prediction(comparetest.Predict(figure.ModelWeights, 4, 4, 4, "f32"),
		comparetest.Predict(figure.MemoryIncrease, 500, 570, 600, ""))
	run := onGPU(comparetest.Run(t, "gpu", e), "gpu-process",
		map[record.Phase]float64{record.Baseline: 50, record.Measure: 90})
	f := compare.Runs(run).Cells[0].Prediction
	if p, _ := f.Part(figure.MemoryIncrease); p.Verdict != memory.NotMeasured || p.Error != nil ||
		!strings.Contains(p.Why, "measured in GPU memory") {
		t.Errorf("%+v", p)
	}
	if p, _ := f.Part(figure.ModelWeights); p.Error == nil {
		t.Errorf("%+v", p)
	}
}

// A negative remainder may be predicted: it is within its range or not, and has no error in percent.
func TestNegativeRemainderIsJudgedByItsRange(t *testing.T) {
	v := memory.NewValidation()
	for _, low := range []float64{-100, 1} {
		e := comparetest.Native(1)
		e.Prediction = prediction(comparetest.Predict(figure.FrameworkOverhead, low, low+1, 20, ""))
		log := tells()
		log["workspaces_bytes"] = 60 << 20
		run := comparetest.Logged(comparetest.Run(t, "below", e), log)
		if p, _ := compare.Runs(run).Cells[0].Prediction.Part(figure.FrameworkOverhead); *p.Measured >= 0 ||
			*p.Within != (low < 0) || p.Percent != nil || p.Error == nil {
			t.Errorf("%+v", p)
		}
		v.Add(validate.Predictions(run))
	}
	v.Close()
	if e := v.Components[0]; e.Name != figure.FrameworkOverhead || e.Cells != 2 || e.N != 0 || e.Within != 0.5 ||
		e.ErrorSizes != nil {
		t.Errorf("%+v", e)
	}
	if b, err := json.Marshal(v); err != nil || strings.Contains(string(b), "median_error_percent") {
		t.Errorf("%v %s", err, b)
	}
}

// A set-up that was taken to be another explains an error better than the size of it.
func TestPredictedSettingsMatchEngine(t *testing.T) {
	e := comparetest.Native(1)
	e.Info.Policy = map[string]string{"context": "1024", "ubatch": "128", "kv_dtype": "f32"}
	e.Prediction = prediction(comparetest.Predict(figure.KVCache, 1, 1, 1, "f32"))
	if r := predicted(t, e).Recommendations; len(r) != 1 ||
		!strings.HasSuffix(r[0], ": context was 1024, not 256 as assumed; ubatch was 128, not 512 as assumed") {
		t.Errorf("%q", r)
	}
}

// The edges of a range, to a hundredth of what is one value, and to a log's last digit.
func TestRanges(t *testing.T) {
	for _, c := range []struct {
		low, best, high float64
		within          bool
	}{{4, 4, 4, true}, {3.961, 3.961, 3.961, true}, {3.95, 3.95, 3.95, false}, {4.039, 4.039, 4.039, true},
		{1, 2, 4, true}, {1, 2, 3.985, true}, {1, 2, 3.97, false}, {4.015, 5, 6, true}, {4.03, 5, 6, false}} {
		e := comparetest.Native(1)
		e.Prediction = prediction(comparetest.Predict(figure.KVCache, c.low, c.best, c.high, "f32"))
		if p, _ := predicted(t, e).Part(figure.KVCache); *p.Within != c.within {
			t.Errorf("4 MiB, predicted %g to %g: %v", c.low, c.high, *p.Within)
		}
	}
}

// Arithmetic is no measurement of other arithmetic, and what is missing on either side is said.
func TestUnpredictedCells(t *testing.T) {
	e := comparetest.Native(1)
	e.Prediction = prediction(comparetest.Predict(figure.ModelWeights, 8, 8, 8, "f32"),
		comparetest.Predict(figure.Activations, 1, 2, 3, "f32"))
	f := compare.Runs(comparetest.Run(t, "x", e)).Cells[0].Prediction
	for name, says := range map[string]string{figure.ModelWeights: "file size, so the value cannot confirm a prediction",
		figure.Activations: "not read separately"} {
		if p, ok := f.Part(name); !ok || p.Verdict != memory.NotMeasured || p.Measured != nil || p.Within != nil ||
			!strings.Contains(p.Why, says) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	e.Prediction = &record.Prediction{Absent: "nothing is known of the model"}
	if f := compare.Runs(comparetest.Run(t, "x", e)).Cells[0].Prediction; f.Absent != "nothing is known of the model" ||
		len(f.Parts) != 0 {
		t.Errorf("%+v", f)
	}
	e.Prediction = nil
	if f := compare.Runs(comparetest.Run(t, "x", e)).Cells[0].Prediction; f != nil {
		t.Errorf("%+v", f)
	}
}

// A forecast of a cell that no launch came of is kept, and nothing is held against it.
func TestRefusedCell(t *testing.T) {
	a, b := comparetest.Browser(2), comparetest.Native(2)
	a.Prediction = prediction(comparetest.Predict(figure.ModelWeights, 8, 8, 8, "f32"))
	a.Risk = &record.Risk{Level: record.RiskHigh, Refused: true, Reasons: []string{"30 GiB are needed and 20 free"},
		Recommendations: []string{"a shorter context"}}
	res := compare.Runs(comparetest.Run(t, "refused", a, b))
	c := res.Cells[0]
	if c.Refused != "would not fit: 30 GiB are needed and 20 free" || c.Risk == nil || c.Parts != nil ||
		c.Figure(figure.PeakPSS).Absent != "refused" {
		t.Errorf("%+v", c)
	}
	if p, ok := c.Prediction.Part(figure.ModelWeights); !ok || p.Verdict != memory.NotMeasured {
		t.Errorf("%+v", p)
	}
	// One that ran all the same, because it was told to, is not refused.
	a.Risk.Refused = false
	if c := compare.Runs(comparetest.Run(t, "ran", a)).Cells[0]; c.Refused != "" || c.Launches.Counted != 2 {
		t.Errorf("%+v", c)
	}
}

func TestValidation(t *testing.T) {
	v := memory.NewValidation()
	for i, kv := range []float64{4, 5, 3, 6} { // errors of 0, 25, -25 and 50 %
		e := comparetest.Native(1)
		e.Cell.Model.Context = 512 << (i % 2)
		e.Info.Policy = nil
		if i == 3 {
			e.Cell.Engine = "ollama"
		}
		e.Prediction = prediction(comparetest.Predict(figure.KVCache, kv, kv, kv, "f32"))
		run := comparetest.Logged(comparetest.Run(t, "x", e), tells())
		run.Dir = string(rune('a' + i))
		v.Add(validate.Predictions(run))
	}
	v.Add(validate.Predictions(comparetest.Run(t, "none", comparetest.Native(1))))
	absent := comparetest.Native(1)
	absent.Prediction = &record.Prediction{Absent: "no shape"}
	v.Add(validate.Predictions(comparetest.Run(t, "absent", absent)))
	v.Close()
	if v.Runs != 6 || v.Without != 2 || len(v.Cells) != 4 || len(v.Absent) != 1 ||
		!strings.Contains(v.Absent[0], "no shape") {
		t.Fatalf("%+v", v)
	}
	if e := v.Components[0]; e.Name != figure.KVCache || e.Cells != 4 || e.N != 4 || e.Median != 25 ||
		e.Bias != 12.5 || e.Max != 50 || e.Within != 0.25 || e.Expected.Variance != 15 {
		t.Errorf("%+v", e)
	}
	if v.Cells[0].Dir != "d" || v.Cells[0].Worst != stats.Round(50.0/15, 6) || v.Cells[0].WorstName != figure.KVCache ||
		v.Cells[3].Dir != "a" {
		t.Errorf("%+v", v.Cells)
	}
	if len(v.Engines) != 2 || v.Engines[0].Name != "llamacpp" || v.Engines[0].Cells != 3 ||
		v.Engines[1].Components[0].Bias != 50 {
		t.Errorf("%+v", v.Engines)
	}
	if len(v.Contexts) != 2 || v.Contexts[0].Name != "512" || v.Contexts[0].Components[0].Bias != -12.5 ||
		v.Contexts[1].Name != "1024" {
		t.Errorf("%+v", v.Contexts)
	}
	if _, err := json.Marshal(v); err != nil {
		t.Error(err)
	}
}

// A median outside of a range whose interval reaches into it is no error that anything can be said of.
func TestPredictionWithinIntervalIsNotOff(t *testing.T) {
	of := func(low, high float64, launches int, vary float64) *memory.Prediction {
		e := comparetest.Native(launches)
		e.Vary = vary
		e.Prediction = &record.Prediction{Source: "gguf",
			Parts: []record.Predicted{comparetest.Predict(figure.MemoryIncrease, low, (low+high)/2, high, "")}}
		return compare.Runs(comparetest.Run(t, "predicted", e)).Cells[0].Prediction
	}
	measured, _ := of(1, 2, 8, 0.3).Part(figure.MemoryIncrease)
	if measured.Interval == nil {
		t.Fatalf("%+v", measured)
	}
	above := *measured.Measured + 0.1
	for _, c := range []struct {
		low  float64
		off  bool
		what string
	}{{above, false, "just above the median"}, {measured.Interval.Hi + 1, true, "above the interval"}} {
		f := of(c.low, c.low+5, 8, 0.3)
		if p, _ := f.Part(figure.MemoryIncrease); *p.Within || (len(f.Recommendations) > 0) != c.off {
			t.Errorf("%s: %q", c.what, f.Recommendations)
		}
	}
}
