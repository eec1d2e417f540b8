package reports_test

import (
	"maps"
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
	"llmparity/reports/reportstest"
)

// The terminal, the page and Markdown print the same figures to the last digit.
func TestEveryRendererPrintsTheSameDigits(t *testing.T) {
	all := cases(t)
	varied := comparetest.Browser(9)
	varied.Vary = 0.2
	all["varied"] = []*record.Run{comparetest.Run(t, "varied", varied, comparetest.Native(7))}
	slower := comparetest.Native(8)
	slower.Vary, slower.Token = 0.04, slower.Token*11/10
	all["two runs"] = []*record.Run{comparetest.Run(t, "before", comparetest.Native(7)),
		comparetest.Run(t, "after", slower)}
	delete(all, "hostile") // labels are spelt in ways of their own
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			runs := all[name]
			reportstest.SameDigits(t, compare.Runs(runs...), runs...)
		})
	}
}
