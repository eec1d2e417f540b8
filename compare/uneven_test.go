package compare_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
)

// Of equal medians, where few launches vary much and many little, more than one family in twenty is called different:
// ranks know no other reason for such orders. What is called so says that.
func TestADifferenceThatMayBeOfSpreadSaysSo(t *testing.T) {
	const trials = 150
	called, warned := 0, 0
	for i := range trials {
		r := rand.New(rand.NewPCG(uint64(i), 31))
		few, many := series{launches: 6, cells: 1, cv: 0.1, engine: "engine", bell: true},
			series{launches: 20, cells: 1, cv: 0.02, engine: "engine", bell: true}
		for _, x := range compare.Runs(few.run(r, "few"), many.run(r, "many")).Comparisons[0].Ratios {
			if !x.Significant {
				continue
			}
			called++
			if slices.ContainsFunc(x.Warnings,
				func(w evidence.Warning) bool { return w.Code == explain.UnevenSpread.Code }) {
				warned++
				if !strings.Contains(x.Verdict, "launches vary differently") ||
					!strings.Contains(x.Warnings[len(x.Warnings)-1].Where, "few") {
					t.Errorf("%s; %+v", x.Verdict, x.Warnings)
				}
			}
		}
	}
	t.Logf("of %d families of equal medians %d figures were called different, with a warning %d", trials, called,
		warned)
	if called == 0 || warned < 8*called/10 {
		t.Errorf("%d figures were called different, and of %d it was said that it may be of spread", called, warned)
	}
}

// What is far apart, or varies alike, has no such warning.
func TestDifferenceWithoutSpreadIsSilent(t *testing.T) {
	const trials = 60
	called, warned := 0, 0
	for i := range trials {
		r := rand.New(rand.NewPCG(uint64(i), 32))
		a := series{launches: 10, cells: 1, cv: 0.05, engine: "engine"}
		b := a
		b.shift = map[string]float64{figure.DecodeTPS: 1.1, figure.PeakPSS: 1.1}
		if i%2 == 1 { // one side varies ten times as much, and they are far apart
			b.cv, b.shift = 0.5, map[string]float64{figure.DecodeTPS: 50, figure.LoadTime: 50}
		}
		for _, x := range compare.Runs(a.run(r, "a"), b.run(r, "b")).Comparisons[0].Ratios {
			if !x.Significant || b.shift[x.Figure] == 0 {
				continue
			}
			called++
			if strings.Contains(x.Verdict, "launches vary differently") {
				warned++
			}
		}
	}
	t.Logf("of %d figures that are different %d are said to be perhaps of spread", called, warned)
	if called < trials || warned > called/20 {
		t.Errorf("of %d figures that are different %d are said to be perhaps of spread", called, warned)
	}
}
