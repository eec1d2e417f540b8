package run_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// perSetup builds engines for each setup, and logs builds and launches in said.
func perSetup(o *trial, said *[]string, make func(s *plan.Setup, name string) engine.Engine) {
	parts := o.Parts
	o.Parts = run.Parts{}
	o.Open = func(_ context.Context, s *plan.Setup) (run.Parts, error) {
		*said = append(*said, fmt.Sprintf("build %d", s.ID))
		built := parts
		built.Engines = nil
		for _, name := range s.Plan.Engines {
			built.Engines = append(built.Engines, make(s, name))
		}
		return built, nil
	}
	o.Progress = func(e run.Event) {
		if e.Kind == run.Launched {
			*said = append(*said, fmt.Sprintf("%s%d of cell %d", e.Engine, e.Repetition, e.Cell))
		}
	}
}

// Launches of setups alternate, so that a machine that slows down does not look like an effect of the setting.
func TestSetupsAlternate(t *testing.T) {
	for order, want := range map[string][]string{
		"": {"build 1", "build 2", "a1 of cell 1", "b1 of cell 2", "a1 of cell 3", "b1 of cell 4", "a2 of cell 1",
			"b2 of cell 2", "a2 of cell 3", "b2 of cell 4"},
		plan.Grouped: {"build 1", "a1 of cell 1", "a2 of cell 1", "b1 of cell 2", "b2 of cell 2", "build 2",
			"a1 of cell 3", "a2 of cell 3", "b1 of cell 4", "b2 of cell 4"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said []string
			o := options(t, &scripted{name: "a"}, &scripted{name: "b"})
			o.Plan.ThreadCounts, o.Plan.Repetitions, o.Plan.Warmup.Launches = []int{1, 2}, 2, 0
			o.Plan.Order = order
			perSetup(&o, &said, func(_ *plan.Setup, name string) engine.Engine { return &scripted{name: name} })
			r := whole(t, o)
			if !slices.Equal(said, want) {
				t.Errorf("order %q: %q, want %q", order, said, want)
			}
			if len(r.Cells) != 4 || r.Cells[2].ID != 3 || r.Cells[2].Setup != 2 || r.Cells[2].Engine != "a" ||
				r.Cells[2].Isolation == "" || len(r.Attempts) != 8 {
				t.Errorf("%d attempts of the cells %+v", len(r.Attempts), r.Cells)
			}
		})
	}
}

func TestCellsAreAnnouncedBeforeFirstLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		o := options(t, &scripted{name: "a"})
		o.Out = t.TempDir()
		o.Plan.ThreadCounts, o.Plan.Repetitions, o.Plan.Warmup.Launches = []int{1, 2, 3}, 1, 0
		announced := -1
		perSetup(&o, &said, func(_ *plan.Setup, name string) engine.Engine {
			return &scripted{name: name, do: func(context.Context, int) error {
				if announced < 0 {
					time.Sleep(10 * time.Second) // until the journal is flushed
					if r, err := record.Open(o.Out + "/latest"); err == nil {
						announced = len(r.Cells)
					}
				}
				return nil
			}}
		})
		if _, err := do(t, t.Context(), o); err != nil || announced != 3 {
			t.Errorf("%v; %d cells announced during the first launch", err, announced)
		}
	})
}

// A token id means another text in another model.
func TestPiecesNeedSingleModel(t *testing.T) {
	for _, models := range [][]string{{"m"}, {"m", "n"}} {
		synctest.Test(t, func(t *testing.T) {
			o := options(t, opinionated("a", 1, 2, 3, 4))
			o.pieces = func(ids []int) map[int]string { return map[int]string{1: "one"} }
			if len(models) > 1 {
				o.Plan.Model = ""
				for _, m := range models {
					o.Plan.Models = append(o.Plan.Models, plan.Group{Model: m})
				}
			}
			r, err := do(t, t.Context(), o)
			if err != nil || (len(r.Pieces) > 0) != (len(models) == 1) || len(r.Cells) != len(models) {
				t.Errorf("%v; of %d models: %v, %d cells", err, len(models), r.Pieces, len(r.Cells))
			}
		})
	}
}
