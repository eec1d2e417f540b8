package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"llmparity/internal/bench/score"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// checks returns the score checks of a run by their cells, without those of the reference implementation.
func checks(r *record.Run) map[int][]*record.Attempt {
	out := map[int][]*record.Attempt{}
	for _, a := range r.Scorings {
		if a.Scoring.Checks() && !a.Scoring.Anchored() {
			out[a.Cell] = append(out[a.Cell], a)
		}
	}
	return out
}

// In its warm-up launch each engine scores the reference's text once: first as a prompt, then step by step. The
// reference warms up first, although the plan names it last. No launch is added.
func TestScoreCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, mute := opinionated("a", 1, 2, 3, 4), opinionated("b", 1, 2, 4, 8), &scripted{name: "mute"}
		o := options(t, a, b, mute)
		o.Plan.TextOf, o.Plan.Parity = "b", new(false)
		r := whole(t, o)
		if len(r.Attempts) != 12 || len(r.Scorings) != 2 || a.launches+b.launches+mute.launches != 12 {
			t.Fatalf("%d attempts, %d scorings", len(r.Attempts), len(r.Scorings))
		}
		for cell, e := range map[int]*scripted{1: a, 2: b} {
			found := checks(r)[cell]
			if len(found) != 1 || found[0].Status != record.OK || len(found[0].Scores) != 4 || found[0].Counted() {
				t.Fatalf("cell %d: %+v", cell, found)
			}
			s := found[0].Scoring
			if !slices.Equal(s.Check.IDs, []int{1, 1, 2, 4, 8}) || !slices.Equal(s.PromptIDs, []int{1}) ||
				s.Check.AsPrompt != 3 || found[0].Scores[3].Forced != 8 {
				t.Errorf("cell %d: %+v, %+v", cell, s, s.Check)
			}
			if len(e.asked) != 2 || !e.asked[0].Whole || len(e.asked[0].IDs) != 3 || e.asked[1].Whole ||
				!slices.Equal(e.asked[1].Prompt, []int{1, 1, 2, 4}) {
				t.Errorf("cell %d: asked %+v", cell, e.asked)
			}
		}
		if first := r.Attempts[0]; first.Cell != 2 {
			t.Errorf("cell %d is warmed up first", first.Cell)
		}
	})
}

// A model's own text needs no reference. Without warm-up launches, engines are launched once more; without the check,
// nothing is scored.
func TestScoreCheckWithoutWarmup(t *testing.T) {
	for name, c := range map[string]struct {
		warmups, launches, scored int
		check                     *bool
	}{"warm-up": {1, 4, 1, nil}, "no warm-up": {0, 4, 1, nil}, "no check": {0, 3, 0, new(false)}} {
		synctest.Test(t, func(t *testing.T) {
			a := opinionated("a", 1, 2, 3, 4)
			o := options(t, a)
			o.Plan.Warmup.Launches, o.Plan.Check, o.CheckText = c.warmups, c.check,
				&score.Check{Of: "a text", IDs: slices.Repeat([]int{7, 8}, 100)}
			r := whole(t, o)
			if a.launches != c.launches || len(checks(r)[1]) != c.scored || len(unscored(r)) > 0 {
				t.Fatalf("%s: %d launches, %d scored; %v", name, a.launches, len(checks(r)[1]), r.Warnings)
			}
			if c.scored > 0 { // the context is 16
				s, of := checks(r)[1][0], checks(r)[1][0].Scoring.Check
				if len(s.Scores) != 15 || of.AsPrompt != 12 || of.Text != "a text" {
					t.Errorf("%s: %d scores of %+v", name, len(s.Scores), of)
				}
			}
		})
	}
}

// An engine that can't score the text is measured all the same.
func TestFailedScoreCheckIsWarning(t *testing.T) {
	for name, score := range map[string]func(context.Context, engine.Forced) error{
		"an error": func(context.Context, engine.Forced) error { return engine.Fail(record.Crash, "it crashed") },
		"too long": func(ctx context.Context, _ engine.Forced) error { <-ctx.Done(); return ctx.Err() },
	} {
		synctest.Test(t, func(t *testing.T) {
			a := opinionated("a", 1, 2, 3, 4)
			a.score = score
			o := options(t, a)
			o.Plan.TextOf, o.Plan.Parity = "a", new(false)
			r, err := do(t, t.Context(), o)
			if err != nil || r.Status != record.OK || len(unscored(r)) == 0 ||
				!strings.Contains(unscored(r)[0], "a could not score the text of the score check") {
				t.Errorf("%s: %v, %s, %v", name, err, r.Status, unscored(r))
			}
			counted := 0
			for _, at := range r.Attempts {
				if at.Counted() {
					counted++
				}
			}
			if counted != 3 {
				t.Errorf("%s: %d counted launches", name, counted)
			}
		})
	}
}

// A run that is interrupted while it checks is resumed: every engine has one check that succeeded, and the reference
// implementation computes the text once.
func TestInterruptedScoreCheckResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		a, b := opinionated("a", 1, 2, 3, 4), opinionated("b", 1, 2, 3, 4)
		a.score = func(ctx context.Context, _ engine.Forced) error { return interrupts(cancel)(ctx) }
		o := options(t, a, b)
		o.Plan.TextOf, o.Plan.Parity = "b", new(false)
		anchored := 0
		o.anchor = func(_ context.Context, ids []int, from int, of [][]rounding.Arithmetic) (*score.Anchor, error) {
			anchored++
			out := &score.Anchor{Anchor: record.Anchor{SHA256: "5f", Yardsticks: map[string]float64{"float32": 1e-5}}}
			for i, id := range ids[from:] {
				out.Scores = append(out.Scores, record.Score{Position: i, Forced: id, LogProb: -1,
					Top: []record.Candidate{{ID: id, LogProb: -1}, {ID: 99, LogProb: -2}}})
			}
			return out, nil
		}
		dir, err := execute(ctx, o)
		if fault.Of(err) != fault.Interrupted {
			t.Fatal(err)
		}
		a.score = nil
		r, err := resumed(t, o, dir)
		if err != nil || r.Status != record.OK || anchored != 1 {
			t.Fatalf("%v, %s; %d anchors", err, r.Status, anchored)
		}
		for cell := 1; cell <= 2; cell++ {
			if found := checks(r)[cell]; len(found) != 1 || found[0].Status != record.OK {
				t.Errorf("cell %d: %+v", cell, found)
			}
		}
		last := r.Scorings[len(r.Scorings)-1]
		if !last.Scoring.Anchored() || len(last.Scores) != 4 ||
			last.Scoring.Check.Anchor.Yardsticks["float32"] != 1e-5 {
			t.Errorf("%+v", last)
		}
		if again, err := resumed(t, o, dir); err != nil || anchored != 1 || len(again.Scorings) != len(r.Scorings) {
			t.Errorf("resumed again: %v, %d anchors", err, anchored)
		}
	})
}

func TestFailedAnchorIsWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, opinionated("a", 1, 2, 3, 4))
		o.Plan.TextOf, o.Plan.Parity = "a", new(false)
		o.anchor = func(context.Context, []int, int, [][]rounding.Arithmetic) (*score.Anchor, error) {
			return nil, errors.New("too large")
		}
		r, err := do(t, t.Context(), o)
		if err != nil || r.Status != record.OK || len(unscored(r)) != 1 ||
			!strings.Contains(unscored(r)[0], "too large") {
			t.Errorf("%v, %s, %v", err, r.Status, unscored(r))
		}
	})
}
