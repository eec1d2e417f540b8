package gate_test

import (
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/gates"
)

// A gate fails if scores are further apart than rounding explains, even if it does not mention them.
func TestGateOfScores(t *testing.T) {
	moved := func(by float64) func(position, rank int) float64 {
		return func(position, rank int) float64 {
			if position == 3 && rank == 10 {
				return by
			}
			return 0
		}
	}
	for name, c := range map[string]struct {
		gate   string
		by     float64
		checks int // of scores
		status gates.Status
	}{
		"default, the same":      {"peak_pss_mb: {max: 9000}", 0, 1, gates.Passed},
		"default, wrong":         {"peak_pss_mb: {max: 9000}", 0.02, 1, gates.Failed},
		"a bound that allows it": {"scores: {max_difference: 0.05}", 0.02, 1, gates.Passed},
		"a bound that does not":  {"scores: {max_difference: 0.0001}", 0.0005, 1, gates.Failed},
		"a warning":              {"scores: {level: warn}", 0.02, 1, gates.Warned},
		"off":                    {"scores: {level: off}", 0.02, 0, gates.Passed},
		"another engine":         {"scores: {engine: ollama}", 0.02, 1, gates.Inconclusive},
	} {
		web, llama := comparetest.Browser(6), comparetest.Native(6)
		web.Checked, llama.Checked = comparetest.Scores(moved(c.by)), comparetest.Scores(moved(0))
		web.Check.Arithmetic, llama.Check.Arithmetic = []string{"float32"}, []string{"float32"}
		out := gate.Evaluate(parse(t, c.gate), result(t, web, llama), nil)
		n := 0
		for _, check := range out.Checks {
			if check.Kind == gates.KindScores {
				n++
			}
		}
		if n != c.checks || out.Status != c.status {
			t.Errorf("%s: %d checks, %s: %+v", name, n, out.Status, out.Checks)
		}
	}
	asked := gate.Evaluate(parse(t, "scores: {max_difference: 0.05}"), result(t, comparetest.Native(6)), nil)
	if asked.Status != gates.Inconclusive {
		t.Errorf("not checked: %s", asked.Verdict)
	}
	unasked := gate.Evaluate(parse(t, "peak_pss_mb: {max: 9000}"), result(t, comparetest.Native(6)), nil)
	if unasked.Status != gates.Passed {
		t.Errorf("not checked, not asked: %s", unasked.Verdict)
	}
}
