package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// inOrder executes a plan and returns its launches in order, as cell.repetition.
func inOrder(t *testing.T, o trial) (out []string, r *record.Run) {
	t.Helper()
	o.Progress = func(e run.Event) {
		if e.Kind == run.Launched {
			out = append(out, fmt.Sprintf("%d.%d", e.Cell, e.Repetition))
		}
	}
	r = whole(t, o)
	return out, r
}

func manyCells(t *testing.T) trial {
	o := options(t, &scripted{name: "a"}, &scripted{name: "b"})
	o.Plan.Prompts = plan.Texts("p", "q", "r", "s")
	return o
}

func TestShuffledOrderDependsOnSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(seed uint64, isolation string) []string {
			o := manyCells(t)
			o.Plan.Order, o.Plan.Seed, o.Plan.Isolation = plan.Shuffled, seed, isolation
			order, _ := inOrder(t, o)
			return order
		}
		for _, isolation := range []string{plan.OfLaunch, plan.Reused, plan.Shared} {
			one, again, other := of(7, isolation), of(7, isolation), of(8, isolation)
			if !slices.Equal(one, again) || slices.Equal(one, other) {
				t.Errorf("%s: same seed %v and %v, other seed %v", isolation, one, again, other)
			}
		}
		order := of(7, plan.OfLaunch)
		for round := range 4 { // each has every cell once, and the first is the warm-up
			cells := map[string]bool{}
			for _, l := range order[8*round : 8*round+8] {
				if !strings.HasSuffix(l, fmt.Sprint(".", round)) {
					t.Errorf("%s is in round %d", l, round)
				}
				cells[l] = true
			}
			if len(cells) != 8 {
				t.Errorf("round %d has %d cells", round, len(cells))
			}
		}
		if slices.Equal(without(order[8:16]), without(order[16:24])) {
			t.Error("two rounds have the same order")
		}
	})
}

func without(launches []string) (cells []string) {
	for _, l := range launches {
		cell, _, _ := strings.Cut(l, ".")
		cells = append(cells, cell)
	}
	return cells
}

func TestDrawnSeedIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := manyCells(t)
		o.Plan.Order = plan.Shuffled
		first, r := inOrder(t, o)
		s, err := record.Scan(r.Dir)
		check.Err(t, err)
		p, err := plan.Parse(s.Plan, "plan.yaml")
		if err != nil || p.OrderSeed == 0 || p.Seed != 0 { // the seed of generated prompts
			t.Fatalf("seeds %d and %d, %v", p.OrderSeed, p.Seed, err)
		}
		o = manyCells(t)
		o.Plan.Order, o.Plan.OrderSeed = plan.Shuffled, p.OrderSeed
		if again, _ := inOrder(t, o); !slices.Equal(first, again) {
			t.Errorf("%v, with the recorded seed %v", first, again)
		}
	})
}

func TestCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for isolation, launches := range map[string]int{plan.OfLaunch: 8, plan.Reused: 4, plan.Shared: 2} {
			took := func(cool time.Duration) time.Duration {
				o := options(t, &scripted{name: "a"})
				o.Plan.Prompts, o.Plan.Isolation, o.Plan.CoolDown = plan.Texts("p", "q"), isolation, plan.Duration(cool)
				begin := time.Now()
				inOrder(t, o)
				return time.Since(begin)
			}
			if more := took(time.Minute) - took(0); more != time.Duration(launches-1)*time.Minute {
				t.Errorf("%s: cooling down between %d launches takes %s", isolation, launches, more)
			}
		}
	})
}

// A shuffled run without a seed draws one, records it, and all its setups have that order.
func TestDrawnSeedIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := manyCells(t)
		o.Plan.Order = plan.Shuffled
		of, err := o.options()
		check.Err(t, err)
		_, err = run.Do(t.Context(), of)
		check.Err(t, err)
		for _, s := range of.Setups {
			if s.Plan.OrderSeed == 0 || s.Plan.OrderSeed != of.Plan.OrderSeed {
				t.Errorf("setup %d has the seed %d, the run %d", s.ID, s.Plan.OrderSeed, of.Plan.OrderSeed)
			}
		}
	})
}
