package openai

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

var _ engine.Scorer = (*session)(nil)

// scored is an answer with the log-probabilities of a prompt: at each position those of the likeliest tokens and of the
// prompt's own, by id.
type scored struct {
	Choices []struct {
		Of []map[string]struct {
			LogProb float64 `json:"logprob"`
			Rank    int     `json:"rank"`
		} `json:"prompt_logprobs"`
	} `json:"choices"`
}

// Score has the whole text computed as a prompt, also if it should be computed step by step, which the API cannot.
func (s *session) Score(ctx context.Context, f engine.Forced, each func(record.Score)) error {
	if err := f.Validate(); err != nil {
		return err
	}
	_, done, err := s.own.Use()
	if err != nil {
		return err
	}
	defer done()
	if s.context > 0 {
		if err := f.Fit(s.context - 1); err != nil { // one token must be generated
			return err
		}
	}
	inner, release := engine.Within(ctx, s.life)
	defer release()
	text := slices.Concat(f.Prompt, f.IDs)
	body := map[string]any{"model": s.model.ID, "prompt": text, "max_tokens": 1, "temperature": 0,
		"prompt_logprobs": f.Top}
	var answer scored
	if err := s.client.Call(inner, http.MethodPost, s.client.at.api+"/completions", body, &answer); err != nil {
		return s.failed(ctx, "scoring", err)
	}
	if len(answer.Choices) != 1 || len(answer.Choices[0].Of) != len(text) {
		return engine.Fail(record.BadOutput, "%s at %s returned no log-probabilities of the prompt", s.server.title(),
			s.client.at.host)
	}
	for i, id := range f.IDs {
		score := record.Score{Position: i, Forced: id}
		ranks := map[int]int{}
		for name, of := range answer.Choices[0].Of[len(f.Prompt)+i] {
			candidate, err := strconv.Atoi(name)
			if err != nil {
				return engine.Fail(record.BadOutput, "the server at %s names token %.20q", s.client.at.host, name)
			}
			if candidate == id {
				score.LogProb = of.LogProb
			}
			ranks[candidate] = of.Rank
			score.Top = append(score.Top, record.Candidate{ID: candidate, LogProb: of.LogProb})
		}
		if _, ok := ranks[id]; !ok {
			return engine.Fail(record.BadOutput, "the server at %s did not score token %d", s.client.at.host, id)
		}
		slices.SortFunc(score.Top, func(a, b record.Candidate) int {
			return cmp.Or(cmp.Compare(b.LogProb, a.LogProb), cmp.Compare(ranks[a.ID], ranks[b.ID]), a.ID-b.ID)
		})
		score.Top = score.Top[:min(f.Top, len(score.Top))]
		if err := score.Sound(); err != nil {
			return engine.Fail(record.BadOutput, "log-probabilities of the server at %s: %w", s.client.at.host, err)
		}
		each(score)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
