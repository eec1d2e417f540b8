package compare_test

import (
	"math"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/figure"
	"llmparity/internal/foreign"
)

// Who asks for it gets ratios of what rows have, each marked.
func TestForeignRowsAgainstARun(t *testing.T) {
	rows, err := foreign.Open("../internal/foreign/testdata/profiler.csv")
	if err != nil {
		t.Fatal(err)
	}
	o := compare.Defaults()
	o.AllowDifferent = true
	r := compare.With(o, comparetest.Run(t, "mine", comparetest.Native(2)), rows)
	if len(r.Comparisons) != 1 || len(r.Comparisons[0].Ratios) != 1 {
		t.Fatalf("%+v", r.Comparisons)
	}
	got, llamacpp := r.Comparisons[0].Ratios[0], r.Cells[0].Figure(figure.PeakRSS).Center()
	if got.Figure != figure.PeakRSS || got.Ratio == nil || math.Abs(*got.Ratio-llamacpp/1536.5) > 1e-6 ||
		!strings.Contains(got.Different, "model, prompt and device of ollama-run1 are not known") {
		t.Errorf("%+v", got)
	}
}
