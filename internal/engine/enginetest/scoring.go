package enginetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// top is how many candidates the suite asks for.
const top = 5

// scores checks scoring. If its own greedy tokens are forced, the engine would have chosen each of them. If another
// first token is forced, later scores depend on it. Afterwards generation is unchanged.
func (l *launch) scores(t *testing.T, free Generation) {
	if !l.engine.Caps().Scores {
		return
	}
	s, ok := l.session.(engine.Scorer)
	if !ok {
		t.Fatal("Caps.Scores is set, but the session is not an engine.Scorer")
	}
	ids := free.IDs()
	own := l.score(t, s, engine.Forced{Prompt: free.Usage.PromptIDs, IDs: ids, Top: top})
	for i, sc := range own {
		if sc.Chosen() != ids[i] || sc.LogProb != sc.Top[0].LogProb {
			t.Errorf("token %d: generated %d, but forced to it would choose %d (%g, forced %g)", i, ids[i],
				sc.Chosen(), sc.Top[0].LogProb, sc.LogProb)
		}
	}
	for i, sc := range l.score(t, s, engine.Forced{Prompt: free.Usage.PromptIDs, IDs: ids, Top: top, Whole: true}) {
		if math.Abs(sc.LogProb-own[i].LogProb) > 0.01 {
			t.Errorf("token %d: log-probability %g as a whole, %g token by token", i, sc.LogProb, own[i].LogProb)
		}
	}
	wrong := slices.Clone(ids)
	wrong[0] = own[0].Top[top-1].ID
	other := l.score(t, s, engine.Forced{Prompt: free.Usage.PromptIDs, IDs: wrong, Top: top})
	if first := other[0]; first.Chosen() != ids[0] || first.Forced != wrong[0] ||
		first.LogProb >= first.Top[0].LogProb {
		t.Errorf("with %d forced first: %+v; unforced it is %d", wrong[0], first, ids[0])
	}
	if len(own) > 1 && own[1].Top[0] == other[1].Top[0] && own[1].Top[1] == other[1].Top[1] {
		t.Errorf("the first forced token does not affect the next score: %+v", other[1])
	}
	l.scoreRefused(t, s, free)
	if again := l.right(t, len(ids)); !slices.Equal(again.IDs(), ids) {
		t.Errorf("after scoring it generates %v, before %v", again.IDs(), ids)
	}
}

// score scores a text and checks what must hold for any.
func (l *launch) score(t *testing.T, s engine.Scorer, f engine.Forced) []record.Score {
	t.Helper()
	var got []record.Score
	var err error
	l.within("Score", func() { err = s.Score(limit(t), f, func(sc record.Score) { got = append(got, sc) }) })
	if err != nil || len(got) != len(f.IDs) {
		t.Fatalf("scored %d of %d tokens: %v", len(got), len(f.IDs), err)
	}
	for i, sc := range got {
		check.Also(t, sc.Sound())
		if sc.Position != i || sc.Forced != f.IDs[i] || len(sc.Top) != f.Top {
			t.Errorf("token %d: position %d, forced %d, %d candidates; want %d and %d", i, sc.Position, sc.Forced,
				len(sc.Top), f.IDs[i], f.Top)
		}
	}
	return got
}

// scoreRefused requests impossible scores, and cancels one halfway.
func (l *launch) scoreRefused(t *testing.T, s engine.Scorer, free Generation) {
	prompt, ids := free.Usage.PromptIDs, free.IDs()
	for name, f := range map[string]engine.Forced{
		"no prompt":      {IDs: ids, Top: top},
		"nothing forced": {Prompt: prompt, Top: top},
		"one candidate":  {Prompt: prompt, IDs: ids, Top: 1},
		"too long":       {Prompt: prompt, IDs: make([]int, l.Model.Context), Top: top},
	} {
		l.within("Score", func() {
			if err := s.Score(limit(t), f,
				func(record.Score) { t.Errorf("%s: a score is reported", name) }); err == nil {
				t.Errorf("%s: no error", name)
			}
		})
	}
	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	n := 0
	l.within("Score", func() {
		err := s.Score(ctx, engine.Forced{Prompt: prompt, IDs: slices.Repeat(ids, 1+100/len(ids)), Top: top},
			func(record.Score) {
				if n++; n == 2 {
					cancel()
				}
			})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at the second token: %v after %d", err, n)
		}
	})
}
