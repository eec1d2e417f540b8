package reports_test

import (
	"testing"

	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// parted is a run of two engines that part at the seventh token, in which the second one's text was forced on both.
func parted(t *testing.T, pieces map[int]string) *record.Run {
	t.Helper()
	web, llama := comparetest.Browser(1), comparetest.Native(1)
	web.IDs[6] = 511
	scores := func(differs bool) (out []record.Score) {
		sure := -0.25
		if differs {
			sure = -0.28125
		}
		for i, id := range llama.IDs {
			s := record.Score{Position: i, Forced: id, LogProb: sure,
				Top: []record.Candidate{{ID: id, LogProb: sure}, {ID: 900, LogProb: -3}}}
			if i == 6 {
				s.Top = []record.Candidate{{ID: id, LogProb: -0.75}, {ID: 511, LogProb: -0.8125}}
				if differs {
					s.Top = []record.Candidate{{ID: 511, LogProb: -0.75}, {ID: id, LogProb: -0.78125}}
				}
				for _, c := range s.Top {
					if c.ID == id {
						s.LogProb = c.LogProb
					}
				}
			}
			out = append(out, s)
		}
		return out
	}
	text := record.Scoring{Reference: llama.Cell.ID, Attempt: 2, PromptIDs: llama.PromptIDs, Top: 2}
	web.Scored, llama.Scored, web.Scores, llama.Scores = text, text, scores(true), scores(false)
	run := comparetest.Run(t, "parted", web, llama)
	run.Pieces = pieces
	return run
}
