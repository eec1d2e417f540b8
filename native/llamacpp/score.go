package llamacpp

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// forcing is a bias that no logit comes near: it makes the server choose a token. What it tells of probabilities is
// from before it.
const forcing = 1e5

// probed is a completion of one token whose probabilities are told: a softmax, at temperature 1, of the model's own
// logits.
type probed struct {
	completion
	NProbs    int      `json:"n_probs"`
	LogitBias [][2]any `json:"logit_bias"`
	PostProbs bool     `json:"post_sampling_probs"`
}

// probabilities is what we read of the answer to it.
type probabilities struct {
	Tokens []int `json:"tokens"`
	Of     []struct {
		ID      *int     `json:"id"`
		LogProb *float64 `json:"logprob"`
		Top     []struct {
			ID      int     `json:"id"`
			LogProb float64 `json:"logprob"`
		} `json:"top_logprobs"`
	} `json:"completion_probabilities"`
}

var _ engine.Scorer = (*session)(nil)

// Score asks for one token a place. The text before it lies in the server's cache but for the last token, so that each
// request computes that one alone, as a step of a generation does.
func (s *session) Score(ctx context.Context, f engine.Forced, each func(record.Score)) error {
	if err := f.Validate(); err != nil {
		return err
	}
	free, err := s.turns.Take()
	if err != nil {
		return err
	}
	defer free()
	srv, err := s.own.Now()
	if err != nil {
		return err
	}
	if err := f.Fit(s.context); err != nil {
		return err
	}
	s.held.begin()
	defer s.held.lost()
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

// score asks what the server thinks of a token behind a text.
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
	case len(p.Of) == 0 || p.Of[0].ID == nil || p.Of[0].LogProb == nil:
		return record.Score{}, engine.Fail(
			record.SetUp, "this llama-server tells no log-probabilities by token ids; a newer one does")
	case *p.Of[0].ID != forced:
		return record.Score{}, engine.Fail(record.BadOutput, "llama-server chose token %d where %d was forced",
			*p.Of[0].ID, forced)
	}
	s := record.Score{Forced: forced, LogProb: logProbOf(*p.Of[0].LogProb)}
	for _, c := range p.Of[0].Top {
		if math.IsNaN(logProbOf(c.LogProb)) {
			break // they come in order
		}
		s.Top = append(s.Top, record.Candidate{ID: c.ID, LogProb: c.LogProb})
	}
	if len(s.Top) < 2 {
		return s, fmt.Errorf("llama-server told %d candidates", len(s.Top))
	}
	return s, nil
}

// logProbOf is a log-probability; NaN where the probability is too small for a float32, for which the server writes
// that type's lowest.
func logProbOf(logProb float64) float64 {
	if logProb < -1e30 {
		return math.NaN()
	}
	return logProb
}
