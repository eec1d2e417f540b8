package main

import (
	"path/filepath"
	"strings"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/predict/calculator"
	"llmparity/internal/record"
)

// predictedRun writes a run with predicted and measured memory.
func predictedRun(t *testing.T, root, name string, kv float64) string {
	t.Helper()
	return comparetest.Write(t, root, name, predicted(kv))
}

// predicted are launches of WebLLM with a prediction, of which only the KV cache may be wrong.
func predicted(kv float64) comparetest.Engine {
	e := comparetest.Measured(comparetest.Browser(2), comparetest.Page())
	e.Prediction = &record.Prediction{Source: "webllm-package", Parts: []record.Predicted{
		comparetest.Predict(figure.ModelWeights, 4.004, 4.004, 4.004, "f32"),
		comparetest.Predict(figure.KVCache, kv, kv, kv, "f32")}}
	return e
}

func TestValidate(t *testing.T) {
	lightTest(t)
	root := t.TempDir()
	right := predictedRun(t, filepath.Join(root, "a", "b"), "good", 0.53125)
	predictedRun(t, root, "bad", 1.0625) // its latest is a link, which must not count twice
	comparetest.Write(t, root, "before", comparetest.Native(1))
	out := good(t, "validate", root)
	mentions(t, out, "Errors by component", "Cells, worst first",
		"2 cells with a prediction and a measurement, in 2 runs",
		"1 run has no cell with both a prediction and a measurement", "+50.0%", "6.7×")
	if bad, right := strings.Index(out, "bad-2026"), strings.Index(out, "good-2026"); bad < 0 || right < bad {
		t.Errorf("the worst is not first:\n%s", out)
	}
	for line := range strings.Lines(out) {
		if n := len([]rune(line)); n > 101 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	if v := decoded[memory.Validation](t, good(t, "validate", root, "--json")); v.Runs != 3 || v.Without != 1 ||
		len(v.Cells) != 2 || v.Components[1].Bias != 50 {
		t.Errorf("%+v", v)
	}
	// A run folder itself, and a link to one.
	mentions(t, good(t, "validate", right, "--markdown"),
		"| KV cache, reserved | 1 | 0.0% | 0.0% | 0.0% | 100% | ±15% |")
	mentions(t, good(t, "validate", filepath.Join(root, "a", "b", "latest"), "--json"), "good-2026")
}

func TestCompareEstimatesReadsOurProfiles(t *testing.T) {
	lightTest(t)
	dir := predictedRun(t, t.TempDir(), "own", 0.5)
	good(t, "report", dir, "--profile")
	out := good(t, "compare-estimates", filepath.Join(dir, "profile-1-webllm.json"), "--json", "--calc-weights",
		"0.00391", "--calc-kv", "0.000519", "--calc-activations", "0.001", "--calc-overhead", "0.5")
	got := decoded[calculator.Comparison](t, out)
	sum, total := 0.0, 0.0
	for _, c := range got.Components {
		if c.Measured == nil {
			t.Fatalf("%s was not read: %s", c.Name, out)
		}
		if sum += *c.Measured; c.Name == "total" {
			total = *c.Measured
		}
	}
	if d := sum - 2*total; d < -1e-5 || d > 1e-5 { // without what the browser holds by itself
		t.Errorf("the components come to %v, the total is %v", sum-total, total)
	}
	if got.Components[0].Verdict != "within" || got.Components[1].Verdict != "within" {
		t.Errorf("%+v", got.Components)
	}
	// Several profiles are compared one after another, with the same numbers.
	profile := filepath.Join(dir, "profile-1-webllm.json")
	both := good(t, "compare-estimates", profile, profile, "--json", "--calc-weights", "0.00391")
	if list := decoded[[]calculator.Comparison](t, both); len(list) != 2 || list[1].Components[0].Verdict != "within" {
		t.Errorf("%s", both)
	}
	text := good(t, "compare-estimates", profile, profile, "--calc-weights", "0.00391")
	if n := strings.Count(text, "profile-1-webllm.json\n"); n != 2 || strings.Count(text, "KV cache") < 2 {
		t.Errorf("%s", text)
	}
}
