package webllm

import (
	"context"
	"fmt"
	"slices"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Score makes the page force a text on WebLLM. It reads raw logits through a LogitProcessor, which exists only
// meanwhile.
func (s *session) Score(ctx context.Context, f engine.Forced, each func(record.Score)) error {
	if err := f.Validate(); err != nil {
		return err
	}
	free, err := s.turn.Take()
	if err != nil {
		return err
	}
	defer free()
	if err := s.Settle(ctx); err != nil {
		return err
	}
	if err := f.Fit(s.context); err != nil {
		return err
	}
	defer s.Guard()()
	count, failed := 0, error(nil)
	answer, err := browser.Long[struct {
		PromptIDs []int `json:"promptIDs"`
	}](ctx, s.Page, "llmparity.interrupt()", "llmparity.score",
		map[string]any{"prompt": f.Prompt, "forced": f.IDs, "top": f.Top, "whole": f.Whole}, func(told browser.Told) {
			for _, numbers := range told.Scores {
				if failed != nil {
					return
				}
				var score record.Score
				if score, failed = scored(f.IDs, count, numbers); failed == nil {
					count++
					each(score)
				}
			}
		})
	switch {
	case err != nil:
		return fmt.Errorf("scoring with WebLLM: %w", err)
	case failed != nil:
		return failed
	case !slices.Equal(answer.PromptIDs, f.Prompt):
		return engine.Fail(record.BadOutput, "WebLLM scored after the prompt %v, not after the given one",
			answer.PromptIDs)
	case count != len(f.IDs):
		return engine.Fail(record.BadOutput, "WebLLM scored %d of %d tokens", count, len(f.IDs))
	}
	return nil
}

// scored parses a token's score: its log-probability, then ids and log-probabilities of the likeliest tokens in turn.
func scored(forced []int, at int, numbers []float64) (record.Score, error) {
	if at == len(forced) || len(numbers)%2 == 0 {
		return record.Score{}, engine.Fail(record.BadOutput, "the page sent %d numbers for token %d of %d", len(numbers),
			at+1, len(forced))
	}
	s := record.Score{Position: at, Forced: forced[at], LogProb: numbers[0]}
	for i := 1; i < len(numbers); i += 2 {
		s.Top = append(s.Top, record.Candidate{ID: int(numbers[i]), LogProb: numbers[i+1]})
	}
	if err := s.Sound(); err != nil {
		return s, engine.Fail(record.BadOutput, "WebLLM's logits: %w", err)
	}
	return s, nil
}
