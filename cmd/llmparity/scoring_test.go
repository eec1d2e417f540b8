package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/record"
)

// within is the tolerance of log-probabilities. Float32 sums in another order differed by 4e-3 for likely tokens, and
// for others by 4e-4 of the logarithm on processors with AVX-512, by 1.5e-3 on one without.
func within(logProb float64) float64 { return max(5e-3, 2e-3*math.Abs(logProb)) }

// scoresAsTheReference scores two texts with an engine, its own and another prompt's, and compares with the reference.
func scoresAsTheReference(t *testing.T, ctx context.Context, s engine.Session, m *reference.Model, own,
	other enginetest.Case) {
	t.Helper()
	for name, forced := range map[string][]int{"its own text": own.Expected, "another's": other.Expected} {
		f := engine.Forced{Prompt: own.PromptIDs, IDs: forced, Top: 10}
		var got []record.Score
		if err := s.(engine.Scorer).Score(ctx, f, func(sc record.Score) { got = append(got, sc) }); err != nil ||
			len(got) != len(forced) {
			t.Fatalf("%s: %d of %d tokens are scored: %v", name, len(got), len(forced), err)
		}
		want := thirdOpinion(m, f)
		worst, agreed := 0.0, 0
		for i, sc := range got {
			all := want[i]
			if sc.Chosen() == sc.Forced {
				agreed++
			}
			if best := all.Top[0]; sc.Chosen() != best.ID && all.Margin() > within(best.LogProb) {
				t.Errorf("%s, token %d: it would say %d, the reference %d", name, i, sc.Chosen(), best.ID)
			}
			for _, c := range append(sc.Top, record.Candidate{ID: sc.Forced, LogProb: sc.LogProb}) {
				p, _ := all.LogProbOf(c.ID)
				worst = max(worst, math.Abs(c.LogProb-p))
				if math.Abs(c.LogProb-p) > within(p) {
					t.Errorf("%s, token %d: the log-probability of %d is %g, the reference has %g", name, i, c.ID,
						c.LogProb, p)
				}
			}
		}
		t.Logf("%s: it would have said %d of %d tokens; log-probabilities lie up to %.2g from the reference's", name,
			agreed, len(got), worst)
		if own := name == "its own text"; own && agreed != len(got) || !own && agreed > len(got)/2 {
			t.Errorf("%s: it would have said %d of %d tokens itself", name, agreed, len(got))
		}
	}
}

// thirdOpinion scores a text with the reference.
func thirdOpinion(m *reference.Model, f engine.Forced) []record.Score {
	s := m.Start()
	for _, id := range f.Prompt[:len(f.Prompt)-1] {
		s.Step(id, false)
	}
	last := f.Prompt[len(f.Prompt)-1]
	var out []record.Score
	for i, id := range f.IDs {
		logits := s.Step(last, true)
		sum := 0.0
		for _, l := range logits {
			sum += math.Exp(float64(l))
		}
		sc := record.Score{Position: i, Forced: id, LogProb: float64(logits[id]) - math.Log(sum)}
		for j, l := range logits {
			sc.Top = append(sc.Top, record.Candidate{ID: j, LogProb: float64(l) - math.Log(sum)})
		}
		slices.SortStableFunc(sc.Top, func(a, b record.Candidate) int { return cmp.Compare(b.LogProb, a.LogProb) })
		out, last = append(out, sc), id
	}
	return out
}
