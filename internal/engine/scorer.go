package engine

import (
	"context"
	"fmt"

	"llmparity/internal/record"
)

// Scorer is a session that can tell, of every place in a text that it is given, what its engine would have chosen there
// and how likely that was: teacher forcing. It takes what a timed generation must not, such as copies of all logits, so
// that nothing of a session that scores is measured. Only sessions of engines with Caps.Scores are asked.
type Scorer interface {
	// Score calls each for every forced token in order, from one goroutine, before it returns. Like Generate it takes
	// the session's turn, and the model must be loaded.
	Score(ctx context.Context, f Forced, each func(record.Score)) error
}

// Forced is a text to score, in the model's ids.
type Forced struct {
	Prompt []int // as the reference tokenised it
	IDs    []int // what is put behind it, one after the other, whatever the engine would have chosen
	Top    int   // how many of the likeliest tokens are told of each place
}

// Validate says what no engine can score.
func (f Forced) Validate() error {
	switch {
	case len(f.Prompt) == 0:
		return fmt.Errorf("a text to score needs the ids of its prompt")
	case len(f.IDs) == 0:
		return fmt.Errorf("there is no token to score")
	case f.Top < 2:
		return fmt.Errorf("%d candidates are too few: a margin lies between two", f.Top)
	}
	return nil
}

// Fit says whether the text and its prompt have room in a context.
func (f Forced) Fit(context int) error {
	if n := len(f.Prompt) + len(f.IDs); n > context {
		return Fail(record.SetUp, "a text of %d tokens does not fit in a context of %d", n, context)
	}
	return nil
}
