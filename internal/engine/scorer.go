package engine

import (
	"context"
	"fmt"

	"llmparity/internal/record"
)

// Scorer is a session that can score a given text (teacher forcing): at each position it reports which tokens its
// engine would have chosen and how likely the given one was. Scoring does work that a timed generation must not do,
// such as copying all logits, so nothing is measured in a session that scores. Only engines with Caps.Scores are
// asked.
type Scorer interface {
	// Score calls each for every forced token in order, from one goroutine, before it returns. Like Generate it counts
	// as a request, and the model must be loaded.
	Score(ctx context.Context, f Forced, each func(record.Score)) error
}

// Forced is a text to score, in the model's ids.
type Forced struct {
	Prompt []int // as the reference tokenised it
	IDs    []int // forced after the prompt, one by one
	Top    int   // how many of the likeliest tokens to report at each position
	// Whole lets an engine compute the text as it computes a prompt, many tokens at a time, if it can. Else it computes
	// token by token, as it generates.
	Whole bool
}

// Validate refuses what no engine can score.
func (f Forced) Validate() error {
	switch {
	case len(f.Prompt) == 0:
		return fmt.Errorf("scoring needs the token ids of the prompt")
	case len(f.IDs) == 0:
		return fmt.Errorf("there is no token to score")
	case f.Top < 2:
		return fmt.Errorf("scoring needs at least 2 candidates for a margin, not %d", f.Top)
	}
	return nil
}

// Fit refuses a text that does not fit in a context.
func (f Forced) Fit(context int) error {
	if n := len(f.Prompt) + len(f.IDs); n > context {
		return Fail(record.SetUp, "text of %d tokens does not fit in a context of %d", n, context)
	}
	return nil
}
