package enginetest

import (
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/tiny/damage"
	"llmparity/internal/record"
)

// ScoresApart scores the text of an intact model in a session, the first part as a prompt and the rest step by step. It
// returns the largest difference of a score.
func ScoresApart(t testing.TB, s engine.Session, in *damage.Intact) (apart float64) {
	t.Helper()
	part := func(from, to int, whole bool) {
		f := engine.Forced{Prompt: in.Text[:from+1], IDs: in.Text[from+1 : to+1], Top: damage.Candidates, Whole: whole}
		n := from
		check.Err(t, s.(engine.Scorer).Score(t.Context(), f, func(sc record.Score) {
			seen := map[int]float64{}
			for _, c := range sc.Top {
				seen[c.ID] = c.LogProb
			}
			apart = max(apart, in.Apart(n, seen))
			n++
		}))
		if n != to {
			t.Fatalf("positions %d to %d are scored, want %d", from, n, to)
		}
	}
	part(0, damage.Prompt, true)
	part(damage.Prompt, damage.Prompt+damage.Steps, false)
	return apart
}
