package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/run"
)

// perSetup builds engines for each setup, and logs builds, launches and ends in said.
func perSetup(o *run.Options, said *[]string, make func(s plan.Setup, name string) engine.Engine) {
	parts := o.Parts
	o.Parts = run.Parts{}
	o.Setups = func(_ context.Context, s plan.Setup) (run.Setup, func(), error) {
		*said = append(*said, fmt.Sprintf("build %d", s.ID))
		built := run.Setup{Setup: s, Parts: parts}
		built.Engines = nil
		for _, name := range s.Plan.Engines {
			built.Engines = append(built.Engines, make(s, name))
		}
		return built, func() { *said = append(*said, fmt.Sprintf("end %d", s.ID)) }, nil
	}
	o.Progress = func(e run.Event) {
		if e.Kind == run.Launched {
			*said = append(*said, fmt.Sprintf("%s%d of cell %d", e.Engine, e.Repetition, e.Cell))
		}
	}
}

func TestSetupsRunOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		o := options(t, &scripted{name: "a"}, &scripted{name: "b"})
		o.Plan.ThreadCounts, o.Plan.Repetitions, o.Plan.Warmup.Launches = []int{1, 2}, 1, 0
		perSetup(&o, &said, func(_ plan.Setup, name string) engine.Engine { return &scripted{name: name} })
		r := whole(t, o)
		want := []string{"build 1", "a1 of cell 1", "b1 of cell 2", "end 1", "build 2", "a1 of cell 3", "b1 of cell 4",
			"end 2"}
		if !slices.Equal(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
		if len(r.Cells) != 4 || r.Cells[2].ID != 3 || r.Cells[2].Setup != 2 || r.Cells[2].Engine != "a" ||
			r.Cells[2].Isolation == "" || len(r.Attempts) != 4 {
			t.Errorf("%d attempts of the cells %+v", len(r.Attempts), r.Cells)
		}
	})
}

func TestCellsAreAnnouncedBeforeFirstLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		o := options(t, &scripted{name: "a"})
		o.Out = t.TempDir()
		o.Plan.ThreadCounts, o.Plan.Repetitions, o.Plan.Warmup.Launches = []int{1, 2, 3}, 1, 0
		announced := -1
		perSetup(&o, &said, func(_ plan.Setup, name string) engine.Engine {
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

func TestFailedPreparationRefusesItsCells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		o := options(t, &scripted{name: "a"}, &scripted{name: "b"})
		o.Plan.ThreadCounts, o.Plan.Repetitions, o.Plan.Warmup.Launches = []int{1, 2}, 2, 0
		perSetup(&o, &said, func(_ plan.Setup, name string) engine.Engine { return &scripted{name: name} })
		build := o.Setups
		o.Setups = func(ctx context.Context, s plan.Setup) (run.Setup, func(), error) {
			if s.ID == 1 {
				return run.Setup{}, nil, fault.New(fault.BadModel, "get one", "there is no such model")
			}
			return build(ctx, s)
		}
		r, err := do(t, t.Context(), o)
		if fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), "setup 1") {
			t.Errorf("the run says %v", err)
		}
		if len(r.Attempts) != 6 || r.Status != record.Failed {
			t.Fatalf("%d attempts, %s", len(r.Attempts), r.Status)
		}
		for i, a := range r.Attempts {
			if failed := i < 2; failed != (a.Status == record.Refused) ||
				failed && (a.Class != record.SetUp || a.Cell != i+1 || !strings.Contains(a.Error, "no such model")) {
				t.Errorf("attempt %d of cell %d: %s %s %s", a.ID, a.Cell, a.Status, a.Class, a.Error)
			}
		}
	})
}

var errAbsent = fault.New(fault.NoLlamaServer, "get it", "it is not here")

func TestEngineAbsentInOneSetup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		o := options(t, &scripted{name: "a"}, &scripted{name: "b"})
		o.Plan.ThreadCounts, o.Plan.Repetitions, o.Plan.Warmup.Launches = []int{1, 2}, 1, 0
		perSetup(&o, &said, func(s plan.Setup, name string) engine.Engine {
			if s.ID == 1 && name == "a" {
				return &scripted{name: name, absent: errAbsent}
			}
			return &scripted{name: name}
		})
		r, err := do(t, t.Context(), o)
		var status []record.Status
		for _, a := range r.Attempts {
			status = append(status, a.Status)
		}
		if want := []record.Status{record.Refused, record.OK, record.OK, record.OK}; !slices.Equal(status, want) ||
			fault.Of(err) != fault.NoLlamaServer {
			t.Errorf("%v; %v, want %v", err, status, want)
		}
	})
}

func TestRefusedCellsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &scripted{name: "a", absent: errAbsent}, &scripted{name: "b"}
		o := options(t, a, b)
		o.Refused = func(c record.Cell) error {
			if c.Engine == "a" {
				return errors.New("not here")
			}
			return nil
		}
		r, err := do(t, t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "a: not here") || a.launches != 0 || b.launches != 4 {
			t.Errorf("%v; %d and %d launches", err, a.launches, b.launches)
		}
		if first := r.Attempts[0]; len(r.Attempts) != 5 || first.Cell != 1 || first.Status != record.Refused ||
			first.Error != "not here" {
			t.Errorf("%d attempts, the first: %+v", len(r.Attempts), first)
		}
	})
}

func TestExcludedCellsAreNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &scripted{name: "a"}, &scripted{name: "b"})
		o.Plan.Prompts = plan.Texts("p", "q")
		o.Plan.Exclude = []plan.Cells{{"engine": {"a"}, "prompt": {"2"}}}
		r := whole(t, o)
		var cells []string
		for _, c := range r.Cells {
			cells = append(cells, fmt.Sprint(c.ID, " ", c.Engine, " ", c.Prompt))
		}
		if want := []string{"1 a p", "2 b p", "3 b q"}; !slices.Equal(cells, want) || len(r.Attempts) != 12 {
			t.Errorf("%d attempts of %q, want %q", len(r.Attempts), cells, want)
		}
	})
}

// A token id means another text in another model.
func TestPiecesNeedSingleModel(t *testing.T) {
	for _, models := range [][]string{{"m"}, {"m", "n"}} {
		synctest.Test(t, func(t *testing.T) {
			o := options(t, opinionatedEngine("a", 1, 2, 3, 4))
			o.Pieces = func(ids []int) map[int]string { return map[int]string{1: "one"} }
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
