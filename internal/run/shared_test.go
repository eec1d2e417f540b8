package run_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"llmparity/internal/engine"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/run"
	"llmparity/internal/sample/gpu"
)

func shared(t *testing.T, engines ...engine.Engine) run.Options {
	o := options(t, engines...)
	o.Plan.Isolation, o.Plan.Prompts, o.Plan.Repetitions = plan.Shared, plan.Texts("p", "q", "r"), 2
	return o
}

func TestCellsShareLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &telling{scripted: scripted{name: "a"}}, &telling{scripted: scripted{name: "b"}}
		a.others, b.others = []*telling{b}, []*telling{a}
		r := whole(t, shared(t, a, b))
		if a.launches != 2 || b.launches != 2 || a.most != 1 || b.most != 1 || len(r.Attempts) != 14 {
			t.Errorf("%d and %d launches, %d and %d sessions at once, %d attempts", a.launches, b.launches, a.most,
				b.most, len(r.Attempts))
		}
		var got []string
		for _, at := range r.Attempts[:7] {
			got = append(got, fmt.Sprintf("c%d r%d by %d: %s", at.Cell, at.Repetition, at.OpenedBy, phases(at)))
		}
		want := []string{"c1 r0 by 0: baseline load warmup measure idle unload",
			"c1 r1 by 0: baseline load warmup measure", "c3 r1 by 2: measure",
			"c5 r1 by 2: measure", "c1 r2 by 2: measure", "c3 r2 by 2: measure", "c5 r2 by 2: measure idle unload"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		for _, at := range r.Attempts {
			info, reported := at.Engine()
			if c := r.Cells[at.Cell-1]; !reported || info.Name != c.Engine || !c.Shared || !c.Reused ||
				len(at.Samples) == 0 || at.Status != record.OK {
				t.Errorf("attempt %d of %+v: %+v", at.ID, c, at)
			}
		}
	})
}

// An open session would lower free memory.
func TestSharedCellsAreJudgedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &telling{scripted: scripted{name: "a"}}
		o := shared(t, a)
		o.Predict = predicted
		judged := 0
		o.Judge = func(context.Context, record.Prediction, *gpu.Monitor) record.Risk {
			if judged++; a.open.Load() != 0 {
				t.Error("a cell is judged while a session is open")
			}
			if judged == 2 {
				return record.Risk{Level: record.RiskHigh, Reasons: []string{"too much"}}
			}
			return record.Risk{Level: record.RiskLow}
		}
		r, err := do(t, t.Context(), o)
		if err == nil || judged != 3 || len(r.Attempts) != 5 || !r.Risks[2].Refused || a.launches != 2 {
			t.Errorf("%v; %d judged, %d attempts, %d launches, %+v", err, judged, len(r.Attempts), a.launches, r.Risks)
		}
	})
}
