package compare_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
)

// Of equal medians, where few launches vary much and many little, more than one family in twenty is called different:
// ranks know no other reason for such orders. What is called so says that.
func TestUnevenSpreadIsWarnedOf(t *testing.T) {
	const trials = 150
	called, warned := 0, 0
	for i := range trials {
		r := rand.New(rand.NewPCG(uint64(i), 31))
		few, many := comparetest.Series{Launches: 6, Cells: 1, CV: 0.1, Bell: true},
			comparetest.Series{Launches: 20, Cells: 1, CV: 0.02, Bell: true}
		for _, x := range compare.Runs(few.Run(r, "few"), many.Run(r, "many")).Comparisons[0].Ratios {
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
