package compare_test

import (
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
)

// Beside times of two runs that differ stands that the slower one had busy neighbours; beside memory it does not, nor
// where the quicker one had.
func TestStolenTimeIsWarnedOf(t *testing.T) {
	little, much := func(n int) float64 { return 0.01 * float64(n%3) },
		func(n int) float64 { return 0.04 + 0.01*float64(n%3) }
	quick, slow := comparetest.Native(8), comparetest.Native(8)
	slow.Token *= 2
	slow.Processes = []comparetest.Process{{Role: "server", Before: 8, Loaded: 60, Shared: 3}}
	for name, of := range map[string]struct {
		quick, slow func(int) float64
		want        bool
	}{"of the slower": {little, much, true}, "of the quicker": {much, little, false}, "of both": {much, much, false},
		"untold": {nil, much, false}} {
		quick.Stolen, slow.Stolen = of.quick, of.slow
		res := compare.Runs(comparetest.Run(t, "quick", quick), comparetest.Run(t, "slow", slow))
		for _, x := range res.Comparisons[0].Ratios {
			warned := slices.ContainsFunc(x.Warnings, func(w evidence.Warning) bool {
				return w.Code == explain.StolenTime.Code && strings.Contains(w.Text, "the host gave ") &&
					strings.Contains(w.Where, "slow")
			})
			if want := of.want && (x.Figure == figure.DecodeTPS); warned != want &&
				(x.Figure == figure.DecodeTPS || x.Figure == figure.PeakPSS) {
				t.Errorf("%s: %s: %q, %+v", name, x.Figure, x.Verdict, x.Warnings)
			}
		}
	}
}
