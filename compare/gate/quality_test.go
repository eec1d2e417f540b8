package gate_test

import (
	"math"
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/compare/gate"
	"llmparity/internal/gates"
	"llmparity/internal/record"
)

// scoring makes an engine that scored two windows. Its tokens are less probable than others' by a factor, and at some
// places it prefers another token.
func scoring(lower float64, others int) comparetest.Engine {
	e := comparetest.Native(2)
	e.Scored = record.Scoring{Reference: e.Cell.ID, PromptIDs: []int{1, 2}, Top: 2,
		Window: &record.Window{Text: "builtin", SHA256: "5f", Of: 2}}
	for i := range 200 {
		likely, next := record.Candidate{ID: 7, LogProb: math.Log(0.5 * lower)}, record.Candidate{ID: 8, LogProb: -2}
		top := []record.Candidate{likely, next}
		if i < others {
			next.LogProb = likely.LogProb
			top = []record.Candidate{next, likely}
		}
		e.Scores = append(e.Scores, record.Score{Forced: 7, LogProb: likely.LogProb, Top: top})
	}
	return e
}

// Perplexity, KL divergence and agreement are compared with what the baseline run's cell made of the same windows.
func TestQualityAgainstBaseline(t *testing.T) {
	g := parse(t, "perplexity: {vs_baseline: +0.5%}\nkl_divergence: {vs_baseline: +0.01%}\n"+
		"vs_baseline: {top1_agreement: -1%}")
	base := result(t, scoring(1, 0))
	for name, c := range map[string]struct {
		now             comparetest.Engine
		ppl, kl, agrees gates.Status
		why             string
	}{
		"unchanged":           {scoring(1, 0), gates.Passed, gates.Passed, gates.Passed, "baseline run 2: 0% on 2 windows"},
		"1% worse":            {scoring(1/1.01, 0), gates.Failed, gates.Passed, gates.Passed, "2.02, baseline run 2: +1%"},
		"other probabilities": {scoring(0.9, 0), gates.Failed, gates.Failed, gates.Passed, "baseline run 2: +11.11%"},
		"other choices":       {scoring(1, 3), gates.Passed, gates.Failed, gates.Failed, "0% on 2 windows"},
	} {
		out := gate.Evaluate(g, result(t, c.now), base)
		expect(t, one(t, out, "perplexity"), c.ppl, c.why)
		expect(t, one(t, out, "kl_divergence_nats from the baseline run at most 0.0001"), c.kl, "nats from the")
		expect(t, one(t, out, "top1_agreement_percent with the baseline run at least 99"), c.agrees, "% with the")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	other := scoring(1, 0)
	other.Scored.PromptIDs = []int{3}
	expect(t, one(t, gate.Evaluate(g, result(t, other), base), "perplexity"), gates.Inconclusive,
		"the baseline run scored another text")
	expect(t, one(t, gate.Evaluate(g, result(t, comparetest.Native(2)), base), "perplexity"), gates.Inconclusive,
		"the run has no perplexity")
}
