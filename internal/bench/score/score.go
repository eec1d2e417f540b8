// Package score has the texts that engines score, token by token: what one of them generated, the text of score checks,
// and a given text in windows.
package score

import (
	"context"
	"slices"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// Candidates is how many of the likeliest tokens are kept for each position. The rest has little weight if the model is
// confident; compare reports the weight otherwise.
const Candidates = 20

// Output is what a cell's engine generated in its first counted launch.
type Output struct {
	Attempt         int
	PromptIDs, Text []int
}

// OutputOf returns what a request generated; nil if token ids are missing.
func OutputOf(attempt int, q *record.Request) *Output {
	if len(q.PromptIDs) == 0 || len(q.Tokens) == 0 {
		return nil
	}
	s := &Output{Attempt: attempt, PromptIDs: q.PromptIDs}
	for _, t := range q.Tokens {
		if t.ID < 0 {
			return nil
		}
		s.Text = append(s.Text, t.ID)
	}
	return s
}

// Differs reports whether two engines continued the same prompt differently.
func (s *Output) Differs(o *Output) bool {
	return slices.Equal(s.PromptIDs, o.PromptIDs) && !slices.Equal(s.Text, o.Text)
}

// Windows are a given text in windows of the model's tokens.
type Windows struct {
	Name, SHA256 string
	IDs          [][]int
}

// What a score check scores: positions that are computed as a prompt and others step by step, so that both kinds of
// kernels are checked. They are the first of the text, so that the prompt is computed in one go, as most prompts are.
const (
	checkedAsPrompt = 48
	checkedBySteps  = 16
)

// Check is a text that all engines of a model score.
type Check struct {
	Of  string // whose text it is, in words
	IDs []int
}

// Within returns a text that fits in a context, and where what is scored of it begins: first computed as a prompt, then
// step by step. It returns nothing if the text is too short.
func (t *Check) Within(context int) (ids []int, from, steps int) {
	if t == nil {
		return nil, 0, 0
	}
	ids = t.IDs[:min(len(t.IDs), 1+checkedAsPrompt+checkedBySteps)]
	if context > 0 {
		ids = ids[:min(len(ids), context)]
	}
	scored := len(ids) - 1
	if scored < 2 {
		return nil, 0, 0
	}
	return ids, 1, len(ids) - max(1, scored*checkedBySteps/(checkedAsPrompt+checkedBySteps))
}

// Parts lets an engine score the positions from one on as a prompt, and those from steps on step by step.
func Parts(ctx context.Context, scorer engine.Scorer, ids []int, from, steps int, each func(record.Score)) error {
	part := func(begin, end int, whole bool) error {
		return scorer.Score(ctx, engine.Forced{Prompt: ids[:begin], IDs: ids[begin:end], Top: Candidates, Whole: whole},
			func(sc record.Score) {
				sc.Position += begin - from
				each(sc)
			})
	}
	if from < steps {
		if err := part(from, steps, true); err != nil {
			return err
		}
	}
	return part(steps, len(ids), false)
}

// Anchor is what the reference implementation computed of a text.
type Anchor struct {
	record.Anchor
	Scores []record.Score
}
