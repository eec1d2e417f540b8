package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"llmparity/internal/bench/run"
	"llmparity/internal/bench/score"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// opinionated returns an engine that can score.
func opinionated(name string, says ...int) *scripted {
	return &scripted{name: name, says: says,
		caps: &engine.Caps{Resident: true, Isolation: record.OfLaunch, TokenIDs: true, Scores: true}}
}

// Every engine that can score scores the reference's text once, after all launches. Scorings don't count as launches.
func TestScoring(t *testing.T) {
	for name, c := range map[string]struct {
		parity *bool
		b      []int
		scored int
	}{
		"texts differ":                {nil, []int{1, 2, 4, 8}, 2},
		"texts are equal":             {nil, []int{1, 2, 3, 4}, 0},
		"equal, with --parity":        {new(true), []int{1, 2, 3, 4}, 2},
		"differ, with --parity=false": {new(false), []int{1, 2, 4, 8}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b, mute := opinionated("a", 1, 2, 3, 4), opinionated("b", c.b...), &scripted{name: "mute"}
			o := options(t, a, b, mute)
			o.Plan.Check, o.Plan.Parity, o.Plan.TextOf = new(false), c.parity, "b"
			o.pieces = func(ids []int) map[int]string {
				out := map[int]string{}
				for _, id := range ids {
					out[id] = strings.Repeat("x", id)
				}
				return out
			}
			last := run.Preparing
			o.Progress = func(e run.Event) {
				if e.Kind == run.Launched && last == run.Scoring {
					t.Errorf("%s: a launch after scoring", name)
				}
				last = e.Kind
			}
			r, err := do(t, t.Context(), o)
			if err != nil || r.Status != record.OK || len(unscored(r)) != 0 {
				t.Errorf("%s: %v, %s, %v", name, err, r.Status, r.Warnings)
			}
			if len(r.Attempts) != 12 || len(r.Scorings) != c.scored || len(a.asked)+len(b.asked) != c.scored {
				t.Fatalf("%s: %d launches, %d scored; asked %v, %v", name, len(r.Attempts), len(r.Scorings), a.asked,
					b.asked)
			}
			for _, s := range r.Scorings {
				if len(s.Scores) != 4 || s.Scores[2].Forced != c.b[2] || s.Scoring.Reference != 2 || s.Counted() ||
					len(s.Phases)+len(s.Samples) != 0 {
					t.Errorf("%s: %+v", name, s)
				}
			}
			if r.Pieces[2] != "xx" || (r.Pieces[51] != "") != (c.scored > 0) {
				t.Errorf("%s: pieces %v", name, r.Pieces)
			}
			if n := a.open.Load() + b.open.Load(); n != 0 {
				t.Errorf("%s: %d open sessions", name, n)
			}
		})
	}
}

// unscored returns the run's warnings about scoring.
func unscored(r *record.Run) []string {
	var out []string
	for _, w := range r.Warnings {
		if strings.Contains(w.Code, "scor") {
			out = append(out, w.Text)
		}
	}
	return out
}

// Failed scoring is a warning; the run is complete.
func TestFailedScoringIsWarning(t *testing.T) {
	for name, c := range map[string]struct {
		score  func(cancel func()) func(context.Context, engine.Forced) error
		err    error
		warned string
		status record.Status
	}{
		"an error": {func(func()) func(context.Context, engine.Forced) error {
			return func(context.Context, engine.Forced) error { return engine.Fail(record.Crash, "it crashed") }
		}, nil, "a could not score the text of prompt 1: it crashed", record.Failed},
		"too long": {func(func()) func(context.Context, engine.Forced) error {
			return func(ctx context.Context, _ engine.Forced) error { <-ctx.Done(); return ctx.Err() }
		}, nil, "scoring took longer than 1m0s", record.Failed},
		"interrupted": {func(cancel func()) func(context.Context, engine.Forced) error {
			return func(ctx context.Context, _ engine.Forced) error { cancel(); <-ctx.Done(); return ctx.Err() }
		}, context.Canceled, "scoring was interrupted after all launches", record.Interrupted},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			a, b := opinionated("a", 1, 2, 3, 4), opinionated("b", 1, 2, 4, 8)
			a.score = c.score(cancel)
			o := options(t, a, b)
			o.Plan.Check, o.Plan.TextOf = new(false), "b"
			r, err := do(t, ctx, o)
			cancel()
			if !errors.Is(err, c.err) || r.Status != record.OK || len(unscored(r)) != 1 ||
				!strings.Contains(unscored(r)[0], c.warned) {
				t.Errorf("%s: %v, %s, %v", name, err, r.Status, r.Warnings)
			}
			if s := r.Scorings[0]; s.Scores != nil || s.Status != c.status {
				t.Errorf("%s: %+v", name, s)
			}
			if interrupted := c.err != nil; (len(b.asked) == 0) != interrupted {
				t.Errorf("%s: the other engine was asked %d times", name, len(b.asked))
			}
		})
	}
}

func TestParityWithoutScorerWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &scripted{name: "mute"})
		o.Plan.Parity = new(true)
		r, err := do(t, t.Context(), o)
		if err != nil || len(unscored(r)) != 1 || !strings.Contains(unscored(r)[0], "nothing was scored") ||
			r.Pieces != nil {
			t.Errorf("%v: %v", err, r.Warnings)
		}
	})
}

// With quality_of, the other engines score nothing of the text.
func TestQualityOfOneEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := opinionated("a", 1, 2, 3, 4), opinionated("b", 1, 2, 3, 4)
		o := options(t, a, b, &scripted{name: "mute"})
		o.Plan.Quality, o.Plan.QualityOf, o.Plan.Check = "a.txt", "b", new(false)
		o.Quality = &score.Windows{Name: "a.txt", SHA256: "5f", IDs: [][]int{{1, 2, 3, 4, 5, 6, 7, 8}}}
		r, err := do(t, t.Context(), o)
		if err != nil || len(a.asked) != 0 || len(b.asked) != 1 || len(unscored(r)) != 0 {
			t.Errorf("%v; scored: %v and %v; warnings %v", err, a.asked, b.asked, unscored(r))
		}
	})
}

// Each engine that can score scores each window of the plan's text once, even if the run is interrupted meanwhile.
func TestInterruptedQualityResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		a, b := opinionated("a", 1, 2, 3, 4), opinionated("b", 1, 2, 3, 4)
		b.score = func(ctx context.Context, f engine.Forced) error {
			if f.Prompt[0] == 10 {
				return interrupts(cancel)(ctx)
			}
			return nil
		}
		o := options(t, a, b, &scripted{name: "mute"})
		o.Plan.TextOf, o.Plan.Quality, o.Plan.Check = "b", "a.txt", new(false)
		o.Quality = &score.Windows{Name: "a.txt", SHA256: "5f",
			IDs: [][]int{{1, 2, 3, 4, 5, 6, 7, 8}, {10, 2, 3, 4, 5, 6, 7, 8}}}
		dir, err := execute(ctx, o)
		if fault.Of(err) != fault.Interrupted || len(a.asked) != 2 || len(b.asked) != 1 && len(b.asked) != 2 {
			t.Fatalf("%v; %v and %v", err, a.asked, b.asked)
		}
		b.score = nil
		before := len(b.asked)
		var left []int // tokens to score, when each text begins and at the end
		o.Progress = func(e run.Event) {
			if e.Kind == run.Scoring && (e.Token == 0 || e.Left == 0) {
				left = append(left, e.Left)
			}
		}
		r, err := resumed(t, o, dir)
		if err != nil || r.Status != record.OK || len(a.asked) != 2 || len(b.asked) > before+2 {
			t.Fatalf("%v, %s; %v and %v", err, r.Status, a.asked, b.asked)
		}
		if n := len(left); n < 2 || left[0] != 3*(n-1) || left[n-1] != 0 {
			t.Errorf("the resumed run has so many tokens left to score: %v", left)
		}
		seen := map[int]int{}
		for _, s := range r.Scorings {
			seen[s.Scoring.Window.Number]++
			if s.Status != record.OK || len(s.Scores) != 3 || len(s.Scoring.PromptIDs) != 5 ||
				s.Scoring.Reference != 2 || !a.asked[0].Whole {
				t.Errorf("%+v", s)
			}
		}
		if len(r.Attempts) != 12 || seen[1] != 2 || seen[2] != 2 {
			t.Errorf("%d launches; windows %v", len(r.Attempts), seen)
		}
		if told := unscored(r); len(told) == 0 || !strings.Contains(told[0], "mute does not score") {
			t.Errorf("warnings %v", told)
		}
	})
}
