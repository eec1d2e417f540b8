package run_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/record/runfolder"
)

// sides returns two runs that log in which order launches generate.
func sides(t *testing.T, said *[]string) (first, second trial, engines []*scripted) {
	all, engines := severalSides(t, 2, said)
	return all[0], all[1], engines
}

func severalSides(t *testing.T, n int, said *[]string) (all []trial, engines []*scripted) {
	out := t.TempDir()
	all = make([]trial, n)
	for i := range all {
		o, e := &all[i], &scripted{name: "engine"}
		engines = append(engines, e)
		e.do = func(ctx context.Context, _ int) error {
			open := 0
			for _, e := range engines {
				open += int(e.open.Load())
			}
			if open != 1 {
				t.Errorf("%d runs have an open session", open)
			}
			*said = append(*said, string('a'+rune(i)))
			return ctx.Err()
		}
		*o = options(t, e)
		o.Out, o.Plan.Warmup.Launches = out, 0
	}
	return all, engines
}

// Three sides take turns, and a side that has ended is left out.
func TestThreeAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		all, _ := severalSides(t, 3, &said)
		all[1].Plan.Repetitions, all[2].Plan.Repetitions = 1, 4
		all[0].Side, all[1].Side = &record.Side{Role: record.BaselineSide}, &record.Side{Role: record.NoiseSide}
		dirs, errs := alternate(t.Context(), all...)
		check.Err(t, errors.Join(errs...))
		if want := []string{"a", "b", "c", "a", "c", "a", "c", "c"}; !slices.Equal(said, want) {
			t.Errorf("order %v, want %v", said, want)
		}
		want := runfolder.Sides{Baseline: dirs[0], Noise: dirs[1], Run: dirs[2]}
		for i, dir := range dirs {
			if s, ok := runfolder.SidesOf(dir); !ok || s != want {
				t.Errorf("sides of %d: %v %+v", i, ok, s)
			}
		}
	})
}

func launchesIn(t *testing.T, dir string) (n int, r *record.Run) {
	t.Helper()
	r, err := record.Open(dir)
	check.Err(t, err)
	for _, a := range r.Attempts {
		if a.Counted() {
			n++
		}
	}
	return n, r
}

func TestSidesAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		first, second, _ := sides(t, &said)
		second.Plan.Repetitions = 5
		dirs, errs := alternate(t.Context(), first, second)
		check.Err(t, errors.Join(errs...))
		if want := []string{"a", "b", "a", "b", "a", "b", "b", "b"}; !slices.Equal(said, want) {
			t.Errorf("order %v, want %v", said, want)
		}
		n, r := launchesIn(t, dirs[0])
		if n != 3 || r.Meta.Against != "" || r.Status != record.OK {
			t.Errorf("first: %d launches, %+v", n, r.Meta)
		}
		n, r = launchesIn(t, dirs[1])
		if n != 5 || r.Meta.Against != filepath.Base(dirs[0]) || dirs[0] == dirs[1] {
			t.Errorf("second: %d launches, %+v", n, r.Meta)
		}
	})
}

// A shared session is closed before the other run's turn.
func TestSidesCloseSharedSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		first, second, engines := sides(t, &said)
		first.Plan.Isolation, second.Plan.Isolation = plan.Reused, plan.Reused
		_, errs := alternate(t.Context(), first, second)
		if err := errors.Join(errs...); err != nil || !slices.Equal(said, []string{"a", "a", "a", "b", "b", "b"}) {
			t.Errorf("%v %v", err, said)
		}
		for _, e := range engines {
			if e.open.Load() != 0 {
				t.Error("open session")
			}
		}
	})
}

func TestSidesEndIfOneCannotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := errors.New("a part is missing")
		for i := range 2 {
			var said []string
			first, second, _ := sides(t, &said)
			of := []*trial{&first, &second}[i]
			of.Parts = run.Parts{}
			of.Open = func(context.Context, *plan.Setup) (run.Parts, error) { return run.Parts{}, missing }
			dirs, errs := alternate(t.Context(), first, second)
			if !errors.Is(errs[i], missing) || errs[1-i] == nil || dirs[i] != "" || len(said) > 0 {
				t.Errorf("%d: %q %v, measured %v", i, dirs, errs, said)
			}
		}
	})
}

func TestSidesResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		first, second, engines := sides(t, &said)
		ctx, cancel := context.WithCancel(t.Context())
		whole := engines[0].do
		engines[0].do = func(ctx context.Context, launch int) error {
			if len(said) == 2 {
				cancel()
			}
			return whole(ctx, launch)
		}
		dirs, errs := alternate(ctx, first, second)
		if errs[0] == nil || errs[1] == nil {
			t.Fatalf("%v", errs)
		}
		for i, dir := range dirs {
			if n, r := launchesIn(t, dir); n != 1 || r.Status != record.Interrupted {
				t.Fatalf("%d: %d launches, %s", i, n, r.Status)
			}
		}
		engines[0].do, said = whole, nil
		first.Resume, second.Resume = dirs[0], dirs[1]
		if _, errs = alternate(t.Context(), first, second); errors.Join(errs...) != nil {
			t.Fatalf("%v", errs)
		}
		for i, dir := range dirs {
			if n, r := launchesIn(t, dir); n != 3 || r.Status != record.OK || (r.Meta.Against == "") != (i == 0) {
				t.Errorf("%d: %d launches, %s, %+v", i, n, r.Status, r.Meta)
			}
		}
		if want := []string{"a", "b", "a", "b"}; !slices.Equal(said, want) {
			t.Errorf("order %v, want %v", said, want)
		}
	})
}
