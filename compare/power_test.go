//go:build !race

// The race detector makes simulations ten times as long and has nothing to find in them: make test runs them without
// it.

package compare_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/ratio"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Simulated records, of each kind.
var families, trials = map[bool]int{false: 60, true: 2500}[check.Slow], map[bool]int{false: 100, true: 3000}[check.Slow]

// trial is one comparison of two runs, of a seed of its own.
func trial(seed int, a, b comparetest.Series) *compare.Result {
	r := rand.New(rand.NewPCG(uint64(seed), 99))
	return compare.Runs(a.Run(r, "before"), b.Run(r, "after"))
}

// share runs trials on all cores and gives the share of which something holds.
func share(trials int, a, b comparetest.Series, holds func(*compare.Result) bool) float64 {
	found := make([]bool, trials)
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		all.Go(func() {
			for i := w; i < trials; i += workers {
				found[i] = holds(trial(i, a, b))
			}
		})
	}
	all.Wait()
	n := 0
	for _, is := range found {
		if is {
			n++
		}
	}
	return float64(n) / float64(trials)
}

// Records of equal engines, of which only luck differs: the whole way from records to what is called different must not
// call more than one family in twenty so. A family is a question: six figures in a cell, or in each of two and their
// means.
func TestEqualFamiliesRarelyDiffer(t *testing.T) {
	kinds := []struct{ Launches, Cells, tests int }{{10, 1, 6}, {6, 1, 6}, {10, 2, 18}, {6, 2, 18}}
	all := 0.0
	for _, of := range kinds {
		cells, tests := of.Cells, of.tests
		equal := comparetest.Series{Launches: of.Launches, Cells: cells, CV: 0.05}
		r := trial(0, equal, equal)
		if len(r.Families) != 1 || len(r.Comparisons) != cells || r.Families[0].Tests != tests ||
			len(r.Families[0].Means) != 6*(cells-1) {
			t.Fatalf("%d families, %d comparisons, %d means, %d tests", len(r.Families), len(r.Comparisons),
				len(r.Families[0].Means), r.Families[0].Tests)
		}
		called := share(families, equal, equal, func(r *compare.Result) bool { return calls(r, "") })
		t.Logf("of %d families of equals of %d launches over %d cells %.1f%% are called different", families,
			of.Launches, cells, 100*called)
		all += called / float64(len(kinds))
	}
	if all > 0.05 {
		t.Errorf("of %d families of equals %.1f%% are called different", families*len(kinds), 100*all)
	}
}

// Grids of equals, whose families are corrected by Benjamini and Hochberg, show a difference no more often.
func TestEqualGridsRarelyDiffer(t *testing.T) {
	const cells = 12
	grids := families / (cells / 2) // they take longer
	equal := comparetest.Series{Launches: 6, Cells: cells, CV: 0.05}
	called := share(grids, equal, equal, func(r *compare.Result) bool {
		return r.Families[0].Correction != stats.ByHochberg || calls(r, "")
	})
	t.Logf("of %d grids of equals %.1f%% are called different", grids, 100*called)
	if called > 0.05 {
		t.Errorf("of %d grids of equals %.1f%% are called different", grids, 100*called)
	}
}

// calls reports whether a result calls some figure different; empty: any.
func calls(r *compare.Result, figure string) bool {
	is := func(name string, j ratio.Judgement) bool {
		return (figure == "" || figure == name) && (j.Call == stats.Differs || j.Call == stats.TooSmall)
	}
	ratios, means := judged(r)
	return slices.ContainsFunc(ratios, func(x ratio.Ratio) bool { return is(x.Figure, x.Judgement) }) ||
		slices.ContainsFunc(means, func(m ratio.Mean) bool { return is(m.Figure, m.Judgement) })
}

// A shift of a tenth in a headline alone must be found nine times in ten: of ten launches a side that vary by 5%, and
// of the six that a plan has where it says nothing where they vary by 3%. Of six that vary by 5% no test would find
// it so often: then the verdict says what it takes.
func TestShiftOfTenPercentIsFound(t *testing.T) {
	const decode, first, peak = figure.DecodeTPS, figure.TTFT, figure.PeakPSS
	for i, c := range []struct {
		figure   string
		by, cv   float64
		launches int
		cells    int
	}{{decode, 1.1, 0.05, 10, 1}, {first, 0.9, 0.05, 10, 1}, {peak, 1.1, 0.05, 10, 1},
		{decode, 1.1, 0.05, 10, 2}, {decode, 1.1, 0.03, 6, 1}, {first, 1.1, 0.03, 6, 1}, {peak, 1.1, 0.03, 6, 1}} {
		for _, bell := range []bool{false, true} {
			if !check.Slow && bell == (i%2 == 0) {
				continue
			}
			a := comparetest.Series{Launches: c.launches, Cells: c.cells, CV: c.cv, Bell: bell}
			b := a
			b.Shift = map[string]float64{c.figure: c.by}
			power := share(trials, a, b, func(r *compare.Result) bool { return calls(r, c.figure) })
			t.Logf("%+v, bell curve %v: found %.1f times in 100", c, bell, 100*power)
			if power < 0.9 {
				t.Errorf("%+v, bell curve %v: found %.1f times in 100", c, bell, 100*power)
			}
		}
	}
}

// In a grid, of which every third pair of cells has a slower decode, six launches a side find the slow pairs; and of
// all that is called different, at most one in twenty is false.
func TestGridOfSixLaunchesFindsWhatDiffers(t *testing.T) {
	const cells = 24
	trials := map[bool]int{false: 12, true: 300}[check.Slow]
	slow := map[int]float64{}
	for c := 1; c <= cells; c++ {
		slow[c] = 1
		if c%3 == 0 {
			slow[c] = 1.25
		}
	}
	s := comparetest.Series{Launches: 6, Cells: cells, CV: 0.03}
	found, falsely, few := 0, 0.0, 0
	for seed := range trials {
		r := rand.New(rand.NewPCG(uint64(seed), 98))
		res := compare.Runs(s.Run(r, "before"), comparetest.Slowed(s.Run(r, "after"), slow))
		called, wrong := 0, 0
		for _, c := range res.Comparisons {
			for _, x := range c.Ratios {
				is := x.Figure == figure.DecodeTPS && slow[res.Cells[c.A].Spec.ID] != 1
				switch {
				case x.Call == stats.TooFewToSay:
					few++
				case x.Call != stats.Differs && x.Call != stats.TooSmall:
				case is:
					called, found = called+1, found+1
				default:
					called, wrong = called+1, wrong+1
				}
			}
		}
		falsely += float64(wrong) / float64(max(called, 1)) / float64(trials)
	}
	of := trials * cells / 3
	t.Logf("found %d of %d; %.1f%% of what is called different is not; %d with too few launches", found, of, 100*falsely, few)
	if float64(found) < 0.9*float64(of) || falsely > 0.05 || few > 0 {
		t.Errorf("found %d of %d, %.1f%% falsely, %d with too few launches", found, of, 100*falsely, few)
	}
}

// Amounts of memory that devices forbid to compare as ratios are tests of their family as well: of engines that use the
// same memory with many prompts, some amount must not differ more often than once in twenty.
func TestEqualAmountsRarelyDiffer(t *testing.T) {
	const cells, runs = 8, 60
	called := 0
	for seed := range runs {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		s := comparetest.Series{Launches: 8, Cells: cells, CV: 0.05, Memory: 0.05}
		run, other := s.Run(r, "amounts"), s.Run(r, "other")
		for _, c := range other.Cells {
			c.ID, c.Engine = c.ID+cells, "browser"
			run.Cells = append(run.Cells, c)
		}
		for _, a := range other.Attempts {
			a.ID, a.Cell = a.ID+1000, a.Cell+cells
			a.Events[0].Device = &record.Device{Class: record.SoftwareAdapter, Name: "SwiftShader"}
			run.Attempts = append(run.Attempts, a)
		}
		res := compare.Runs(run)
		if len(res.Comparisons) != cells || len(res.Families) != 1 {
			t.Fatalf("%d comparisons, %d families", len(res.Comparisons), len(res.Families))
		}
		if slices.ContainsFunc(res.Comparisons, func(c compare.Comparison) bool {
			v := res.Verdict(&c, res.Cells[c.A].Points().Peak, res.Cells[c.B].Points().Peak, "a", "b")
			if !v.AmountOnly || v.Outcome == verdict.NotComparable {
				t.Fatalf("no amount is judged: %+v", v)
			}
			return v.Outcome == verdict.Different
		}) {
			called++
		}
	}
	if called > runs/10 {
		t.Errorf("in %d of %d families of equals some amount of memory differs", called, runs)
	}
	t.Logf("%d of %d", called, runs)
}
