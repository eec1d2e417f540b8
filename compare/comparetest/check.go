package comparetest

import (
	"llmparity/internal/record"
)

// checkedFrom is where the text of score checks that Scores makes is scored from.
const checkedFrom = 4

// Scores makes scores of 64 positions and 20 candidates each, with log-probabilities moved by shift. The likeliest
// token has a probability of about one half, the last one 0.0001.
func Scores(shift func(position, rank int) float64) (out []record.Score) {
	for i := range 64 {
		s := record.Score{Position: i, Forced: i % 32}
		for rank := range 20 {
			s.Top = append(s.Top, record.Candidate{ID: (i + rank) % 32,
				LogProb: -0.7 - 0.45*float64(rank) + shift(i, rank)})
		}
		s.LogProb = s.Top[0].LogProb
		out = append(out, s)
	}
	return out
}

// check writes the score checks.
func (e Engine) check(w *record.Writer) {
	write := func(scores []record.Score, anchor *record.Anchor) {
		if scores == nil {
			return
		}
		what := e.Check
		what.Anchor = anchor
		if what.IDs == nil {
			what.IDs, what.AsPrompt = IDs(checkedFrom+len(scores)), 48
		}
		r := w.Begin(e.Cell, record.Beginning{Scoring: &record.Scoring{Reference: e.Cell.ID,
			PromptIDs: what.IDs[:checkedFrom], Tokens: len(scores), Top: 20, Check: &what}})
		for _, s := range scores {
			r.Score(s)
		}
		r.End(record.OK, "", nil, record.Cost{})
	}
	write(e.Checked, nil)
	write(e.Anchored, e.Check.Anchor)
}
