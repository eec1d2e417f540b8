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
	g := &scoring{forced: f.IDs, each: each}
	answer, err := browser.Long[struct {
		PromptIDs []int `json:"promptIDs"`
	}](ctx, s.Page, "llmparity.interrupt()", "llmparity.score",
		map[string]any{"prompt": f.Prompt, "forced": f.IDs, "top": f.Top, "whole": f.Whole}, g.take)
	switch {
	case err != nil:
		return fmt.Errorf("scoring with WebLLM: %w", err)
	case g.err != nil:
		return g.err
	case !slices.Equal(answer.PromptIDs, f.Prompt):
		return engine.Fail(record.BadOutput, "WebLLM scored after the prompt %v, not after the given one",
			answer.PromptIDs)
	case g.count != len(f.IDs):
		return engine.Fail(record.BadOutput, "WebLLM scored %d of %d tokens", g.count, len(f.IDs))
	}
	return nil
}

// scoring collects the scores of a text.
type scoring struct {
	forced []int
	each   func(record.Score)
	count  int
	err    error // the first one
}

// take reports scores. Each has the forced token's log-probability, then ids and log-probabilities in turn.
func (g *scoring) take(told browser.Told) {
	for _, numbers := range told.Scores {
		if g.err != nil {
			return
		}
		if g.count == len(g.forced) || len(numbers)%2 == 0 {
			g.err = engine.Fail(record.BadOutput, "the page sent %d numbers for token %d of %d", len(numbers),
				g.count+1, len(g.forced))
			return
		}
		s := record.Score{Position: g.count, Forced: g.forced[g.count], LogProb: numbers[0]}
		for i := 1; i < len(numbers); i += 2 {
			s.Top = append(s.Top, record.Candidate{ID: int(numbers[i]), LogProb: numbers[i+1]})
		}
		if err := s.Sound(); err != nil {
			g.err = engine.Fail(record.BadOutput, "WebLLM's logits: %w", err)
			return
		}
		g.count++
		g.each(s)
	}
}
