package main

import (
	"testing"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/compare/ship"
)

// A tolerance of perplexity is a percentage, in both commands that recommend a form.
func TestPerplexityTolerance(t *testing.T) {
	lightTest(t)
	a, b := comparetest.Native(6), comparetest.Native(6)
	b.Cell.ID, b.Cell.Setup = a.Cell.ID+1, 2
	a.Cell.Model.Name, b.Cell.Model.Name, b.Cell.Model.SHA256 = "a-Q8_0", "a-Q4_0", "4"
	b.Processes[0].Loaded -= 20
	dir := comparetest.Write(t, t.TempDir(), "forms", a, b)
	for flag, want := range map[string]float64{"5%": 0.05, "2.5": 0.025, "": ship.Tolerance} {
		for _, args := range [][]string{{"report", dir, "--json"}, {"compare", dir, "--json"}} {
			if flag != "" {
				args = append(args, "--perplexity-tolerance", flag)
			}
			if res := decoded[compare.Result](t, good(t, args...)); res.Forms[0].Tolerance != want {
				t.Errorf("%q: %g", args, res.Forms[0].Tolerance)
			}
		}
	}
	for _, bad := range []string{"-1%", "NaN", "much"} {
		if _, _, code := called("compare", dir, "--perplexity-tolerance", bad); code != 2 {
			t.Errorf("%q: exit code %d", bad, code)
		}
	}
}
