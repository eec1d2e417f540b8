package run_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/run"
)

// Each engine that can score scores each window of the plan's text once, even if the run is interrupted meanwhile.
func TestInterruptedQualityResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		a, b := opinionatedEngine("a", 1, 2, 3, 4), opinionatedEngine("b", 1, 2, 3, 4)
		b.score = func(ctx context.Context, f engine.Forced) error {
			if f.Prompt[0] == 10 {
				return interrupts(cancel)(ctx)
			}
			return nil
		}
		o := options(t, a, b, &scripted{name: "mute"})
		o.Reference, o.Plan.Quality = named("b"), "a.txt"
		o.Quality = func() (*run.Text, error) {
			return &run.Text{Name: "a.txt", SHA256: "5f",
				Windows: [][]int{{1, 2, 3, 4, 5, 6, 7, 8}, {10, 2, 3, 4, 5, 6, 7, 8}}}, nil
		}
		dir, err := run.Do(ctx, o)
		if fault.Of(err) != fault.Interrupted || len(a.asked) != 2 || len(b.asked) != 1 && len(b.asked) != 2 {
			t.Fatalf("%v; %v and %v", err, a.asked, b.asked)
		}
		b.score = nil
		before := len(b.asked)
		r, err := resumed(t, o, dir)
		if err != nil || r.Status != record.OK || len(a.asked) != 2 || len(b.asked) > before+2 {
			t.Fatalf("%v, %s; %v and %v", err, r.Status, a.asked, b.asked)
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
