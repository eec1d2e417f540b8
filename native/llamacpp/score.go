package llamacpp

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// forcing is a logit bias that no logit comes near, so the server chooses this token. The probabilities that it
// reports do not include the bias.
const forcing = 1e5

// probed is a completion of one token with probabilities: a softmax, at temperature 1, of the model's own logits.
type probed struct {
	completion
	NProbs    int      `json:"n_probs"`
	LogitBias [][2]any `json:"logit_bias"`
}

// probabilities holds the fields of the answer that we use.
type probabilities struct {
	Of []struct {
		ID      *int     `json:"id"`
		LogProb *float64 `json:"logprob"`
		Top     []struct {
			ID      int     `json:"id"`
			LogProb float64 `json:"logprob"`
		} `json:"top_logprobs"`
	} `json:"completion_probabilities"`
}

var _ engine.Scorer = (*session)(nil)

// Score requests one token for each position. All of the text before it but the last token is in the server's cache,
// so each request computes one token, as a step of a generation does.
func (s *session) Score(ctx context.Context, f engine.Forced, each func(record.Score)) error {
	if err := f.Validate(); err != nil {
		return err
	}
	srv, done, err := s.own.Use()
	if err != nil {
		return err
	}
	defer done()
	if err := f.Fit(s.context); err != nil {
		return err
	}
	s.held.begin()
	defer s.held.end(-1, 0)
	if err := s.free(ctx, srv); err != nil {
		return s.explain(ctx, srv, err)
	}
	text := append(make([]int, 0, len(f.Prompt)+len(f.IDs)), f.Prompt...)
	for i, id := range f.IDs {
		score, err := srv.client.score(ctx, text, id, f.Top, i > 0)
		if err != nil {
			s.givenUp.Store(true)
			return s.explain(ctx, srv, err)
		}
		score.Position = i
		if err := score.Sound(); err != nil {
			return engine.Fail(record.BadOutput, "llama-server's probabilities: %w", err)
		}
		each(score)
		text = append(text, id)
	}
	return nil
}

// score asks for the probability of a token after a text.
func (c *client) score(ctx context.Context, text []int, id, top int, cached bool) (record.Score, error) {
	body := probed{completion: newCompletion(text, 1, 0, 0), NProbs: top, LogitBias: [][2]any{{id, forcing}}}
	body.Stream, body.CachePrompt = false, cached
	var p probabilities
	if err := c.Call(ctx, http.MethodPost, "/completion", body, &p); err != nil {
		return record.Score{}, err
	}
	return p.score(id)
}

func (p probabilities) score(forced int) (record.Score, error) {
	switch {
	case len(p.Of) == 0 || p.Of[0].ID == nil:
		return record.Score{}, engine.Fail(
			record.SetUp, "this llama-server does not report log-probabilities by token id; use a newer one")
	case p.Of[0].LogProb == nil:
		return record.Score{}, engine.Fail(record.BadOutput, "llama-server's logits are not numbers")
	case *p.Of[0].ID != forced:
		return record.Score{}, engine.Fail(record.BadOutput, "llama-server chose token %d instead of the forced %d",
			*p.Of[0].ID, forced)
	}
	s := record.Score{Forced: forced, LogProb: logProbOf(*p.Of[0].LogProb)}
	for _, c := range p.Of[0].Top {
		if math.IsNaN(logProbOf(c.LogProb)) {
			break // sorted by probability
		}
		s.Top = append(s.Top, record.Candidate{ID: c.ID, LogProb: c.LogProb})
	}
	if len(s.Top) < 2 {
		return s, fmt.Errorf("llama-server reported %d candidates, at least 2 are needed", len(s.Top))
	}
	return s, nil
}

// logProbOf returns NaN for the lowest float32, which the server writes if a probability is too small for a float32.
func logProbOf(logProb float64) float64 {
	if logProb < -1e30 {
		return math.NaN()
	}
	return logProb
}
