package compare_test

import (
	"math/rand/v2"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/stats"
)

// An interval of a change never contradicts what the corrected test says.
func TestIntervalsAgreeWithCorrectedTests(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	replaced := 0
	for n := range 12 {
		s := comparetest.Series{Launches: 6 + n%3*2, Cells: 2, CV: 0.03}
		by := 1 + 0.01*float64(n)
		res := compare.Runs(s.Run(r, "a"), slowed(s.Run(r, "b"), map[int]float64{1: by, 2: by}))
		agrees := func(significant bool, i *stats.Interval, title string) {
			if i != nil && significant == (i.Lo <= 0 && i.Hi >= 0) {
				t.Errorf("%s: significant %v, but the interval is %+v", title, significant, *i)
			}
			if i != nil && i.Confidence > stats.Confidence {
				replaced++
			}
		}
		ratios, means := judged(res)
		for _, x := range ratios {
			agrees(x.Significant, x.PercentInterval, x.Title)
			agrees(x.Significant, x.DeltaInterval, x.Title)
		}
		for _, m := range means {
			agrees(m.Significant, m.PercentInterval, "mean "+m.Title)
		}
	}
	if replaced == 0 {
		t.Error("no interval was that of the test: the case is not tested")
	}
}
