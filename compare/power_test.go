//go:build !race

// The race detector makes simulations ten times as long and has nothing to find in them: make test runs them without
// it.

package compare_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"llmparity/compare"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
)

// trial is one comparison of two runs, of a seed of its own.
func trial(seed int, a, b series) *compare.Result {
	r := rand.New(rand.NewPCG(uint64(seed), 99))
	return compare.Runs(a.run(r, "before"), b.run(r, "after"))
}

// share runs trials on all cores and gives the share of which something holds.
func share(trials int, a, b series, holds func(*compare.Result) bool) float64 {
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

// anyDifference is whether a result calls anything different.
func anyDifference(r *compare.Result) bool {
	for _, c := range r.Comparisons {
		for _, x := range c.Ratios {
			if x.Significant || x.Call == stats.Differs || x.Call == stats.TooSmall {
				return true
			}
		}
	}
	for _, f := range r.Families {
		for _, m := range f.Means {
			if m.Significant || m.Call == stats.Differs || m.Call == stats.TooSmall {
				return true
			}
		}
	}
	return false
}

// Records of equal engines, of which only luck differs: the whole way from records to what is called different must not
// call more than one family in twenty so. A family is a question: six figures in a cell, or in each of two and their
// means.
func TestOfEqualsOneFamilyInTwentyDiffers(t *testing.T) {
	kinds := []struct{ launches, cells, tests int }{{10, 1, 6}, {6, 1, 6}, {10, 2, 18}, {6, 2, 18}}
	all := 0.0
	for _, of := range kinds {
		cells, tests := of.cells, of.tests
		equal := series{launches: of.launches, cells: cells, cv: 0.05, engine: "engine"}
		r := trial(0, equal, equal)
		if len(r.Families) != 1 || len(r.Comparisons) != cells || r.Families[0].Tests != tests ||
			len(r.Families[0].Means) != 6*(cells-1) {
			t.Fatalf("%d families, %d comparisons, %d means, %d tests", len(r.Families), len(r.Comparisons),
				len(r.Families[0].Means), r.Families[0].Tests)
		}
		called := share(families, equal, equal, anyDifference)
		t.Logf("of %d families of equals of %d launches over %d cells %.1f %% are called different", families,
			of.launches, cells, 100*called)
		all += called / float64(len(kinds))
	}
	if all > 0.05 {
		t.Errorf("of %d families of equals %.1f %% are called different", families*len(kinds), 100*all)
	}
}

// A shift of a tenth in a headline alone must be found nine times in ten: of ten launches a side that vary by 5 %, and
// of the six that a plan has where it says nothing where they vary by 3 %. Of six that vary by 5 % no test would find
// it so often: then the verdict says what it takes.
func TestAShiftOfATenthIsFound(t *testing.T) {
	found := func(figure string) func(*compare.Result) bool {
		return func(r *compare.Result) bool {
			for _, f := range r.Families {
				for _, m := range f.Means {
					if m.Figure == figure && m.Call == stats.Differs {
						return true
					}
				}
			}
			for _, c := range r.Comparisons {
				for _, x := range c.Ratios {
					if x.Figure == figure && x.Call == stats.Differs {
						return true
					}
				}
			}
			return false
		}
	}
	slower := map[string]float64{}
	for _, f := range []string{figure.LoadTime, figure.TTFT, figure.DecodeTPS, figure.PrefillTPS} {
		slower[f] = 1.1
	}
	for _, c := range []struct {
		name     string
		launches int
		cv       float64
		cells    int
		shift    map[string]float64
		figure   string
	}{
		{"decode alone takes a tenth more time", 10, 0.05, 1, map[string]float64{figure.DecodeTPS: 1.1},
			figure.DecodeTPS},
		{"decode alone yields a tenth less", 10, 0.05, 1, map[string]float64{figure.DecodeTPS: 1 / 0.9},
			figure.DecodeTPS},
		{"the first token alone takes a tenth more time", 10, 0.05, 1, map[string]float64{figure.TTFT: 1.1},
			figure.TTFT},
		{"the first token alone takes a tenth less time", 10, 0.05, 1, map[string]float64{figure.TTFT: 0.9},
			figure.TTFT},
		{"the peak is a tenth higher", 10, 0.05, 1, map[string]float64{figure.PeakPSS: 1.1}, figure.PeakPSS},
		{"all takes a tenth more time", 10, 0.05, 1, slower, figure.DecodeTPS},
		{"decode takes a tenth more time in two cells", 10, 0.05, 2, map[string]float64{figure.DecodeTPS: 1.1},
			figure.DecodeTPS},
		{"decode takes a tenth more time in six launches", 6, 0.03, 1, map[string]float64{figure.DecodeTPS: 1.1},
			figure.DecodeTPS},
		{"the first token takes a tenth more time in six launches", 6, 0.03, 1, map[string]float64{figure.TTFT: 1.1},
			figure.TTFT},
		{"the peak is a tenth higher in six launches", 6, 0.03, 1, map[string]float64{figure.PeakPSS: 1.1},
			figure.PeakPSS},
	} {
		for _, bell := range []bool{false, true} {
			a := series{launches: c.launches, cells: c.cells, cv: c.cv, engine: "engine", bell: bell}
			b := a
			b.shift = c.shift
			power := share(trials, a, b, found(c.figure))
			shape := map[bool]string{false: "a long tail", true: "a bell curve"}[bell]
			t.Logf("%s, by %s: found %.1f times in 100", c.name, shape, 100*power)
			if power < 0.9 {
				t.Errorf("%s, by %s: found %.1f times in 100", c.name, shape, 100*power)
			}
		}
	}
}
