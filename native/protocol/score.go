package protocol

import (
	"context"
	"fmt"
	"math"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

var _ engine.Scorer = (*session)(nil)

// Score requests scores. The engine sends a line for each token, as in a generation.
func (s *session) Score(ctx context.Context, f engine.Forced, each func(record.Score)) error {
	if err := f.Validate(); err != nil {
		return err
	}
	c, done, err := s.use()
	if err != nil {
		return err
	}
	defer done()
	if s.context > 0 {
		if err := f.Fit(s.context); err != nil {
			return err
		}
	}
	n := 0
	_, _, err = c.ask(ctx, opScore, fields{"prompt_ids": f.Prompt, "ids": f.IDs, "top": f.Top},
		func(_ *call, r received) error {
			if r.Event != evToken {
				return nil
			}
			if n == len(f.IDs) {
				return fmt.Errorf("score %d of %d tokens", n+1, n)
			}
			sc, err := r.score(n, f.IDs[n])
			if err == nil {
				n++
				each(sc)
			}
			return err
		})
	if err == nil && n < len(f.IDs) {
		err = c.fail(c.wrong(opScore, record.BadOutput, "%s violates the protocol: it scored %d of %d tokens", c.name, n,
			len(f.IDs)))
	}
	if err != nil {
		s.tell(ctx, c)
	}
	return ended(ctx, "scoring", err)
}

// score parses the score of a token.
func (m message) score(position, forced int) (record.Score, error) {
	if m.Token == nil || *m.Token != forced {
		return record.Score{}, fmt.Errorf(`score %d must have the forced "token" %d`, position, forced)
	}
	sc := record.Score{Position: position, Forced: forced, LogProb: math.NaN()}
	if m.LogProb != nil {
		sc.LogProb = *m.LogProb
	}
	for _, c := range m.Top {
		if c.Token == nil || c.LogProb == nil {
			return sc, fmt.Errorf(`score %d: an entry of "top" lacks "token" or "logprob"`, position)
		}
		sc.Top = append(sc.Top, record.Candidate{ID: *c.Token, LogProb: *c.LogProb})
	}
	return sc, sc.Sound()
}
