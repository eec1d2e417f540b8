package enginetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// top is how many candidates the suite asks for.
const top = 5

// scores checks an engine that says it can score: with its own greedy tokens forced it would have chosen each of them;
// with another one in front of them it goes by what is forced and not by what it would have said; and it generates as
// before afterwards.
func (l *launch) scores(t *testing.T, free Generation) {
	if !l.engine.Caps().Scores {
		return
	}
	s, ok := l.session.(engine.Scorer)
	if !ok {
		t.Fatal("the engine says that it scores, and its session is no engine.Scorer")
	}
	ids := free.IDs()
	own := l.score(t, s, engine.Forced{Prompt: free.Usage.PromptIDs, IDs: ids, Top: top})
	for i, sc := range own {
		if sc.Chosen() != ids[i] || sc.LogProb != sc.Top[0].LogProb {
			t.Errorf("token %d: it generated %d, and forced to it would have chosen %d (%g, forced %g)", i, ids[i],
				sc.Chosen(),
				sc.Top[0].LogProb, sc.LogProb)
		}
	}
	wrong := slices.Clone(ids)
	wrong[0] = own[0].Top[top-1].ID
	other := l.score(t, s, engine.Forced{Prompt: free.Usage.PromptIDs, IDs: wrong, Top: top})
	if first := other[0]; first.Chosen() != ids[0] || first.Forced != wrong[0] ||
		first.LogProb >= first.Top[0].LogProb {
		t.Errorf("forced to say %d first, it tells %+v; freely it says %d", wrong[0], first, ids[0])
	}
	if len(own) > 1 && own[1].Top[0] == other[1].Top[0] && own[1].Top[1] == other[1].Top[1] {
		t.Errorf("what was forced first changes nothing behind it: %+v", other[1])
	}
	l.scoreRefused(t, s, free)
	if again := l.right(t, len(ids)); !slices.Equal(again.IDs(), ids) {
		t.Errorf("after scoring it generates %v, before %v", again.IDs(), ids)
	}
}

// score scores a text and checks what holds for any.
func (l *launch) score(t *testing.T, s engine.Scorer, f engine.Forced) []record.Score {
	t.Helper()
	var got []record.Score
	var err error
	l.within("Score", func() { err = s.Score(limit(t), f, func(sc record.Score) { got = append(got, sc) }) })
	if err != nil || len(got) != len(f.IDs) {
		t.Fatalf("%d of %d tokens were scored: %v", len(got), len(f.IDs), err)
	}
	for i, sc := range got {
		if err := sc.Sound(); err != nil {
			t.Error(err)
		}
		if sc.Position != i || sc.Forced != f.IDs[i] || len(sc.Top) != f.Top {
			t.Errorf("token %d: position %d, forced %d, %d candidates; want %d and %d", i, sc.Position, sc.Forced,
				len(sc.Top), f.IDs[i], f.Top)
		}
	}
	return got
}

// scoreRefused asks for what can't be scored, and gives up in the middle.
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
				func(record.Score) { t.Errorf("%s: something is scored", name) }); err == nil {
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
			t.Errorf("given up at the second token, it says %v after %d", err, n)
		}
	})
}
