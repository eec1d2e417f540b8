package reports_test

import (
	"io"
	"strings"
	"testing"

	"llmparity/compare"
	"llmparity/compare/parity"
	"llmparity/reports"
)

func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// Where two cells part at a tie that rounding turns, nothing is wrong with either; where they part otherwise, something
// is.
func TestJUnitPassesNearTies(t *testing.T) {
	same, other := true, false
	for name, c := range map[string]struct {
		change func(*parity.Parity)
		passes bool
	}{
		"rounding is enough":      {func(p *parity.Parity) { p.SamePrompt = &same }, true},
		"rounding is not enough":  {func(p *parity.Parity) { p.First.Rounding = false }, false},
		"nobody asked":            {func(p *parity.Parity) { p.First = nil }, false},
		"the prompts differ, too": {func(p *parity.Parity) { p.SamePrompt = &other }, false},
	} {
		p := parity.Parity{Compared: true, Verdict: "they part at token 3",
			First: &parity.Divergence{Index: 2, Rounding: true}}
		c.change(&p)
		res := &compare.Result{Cells: []*compare.Cell{{Label: "left"}, {Label: "right"}}, Parity: []parity.Parity{p}}
		res.Parity[0].A, res.Parity[0].B = 0, 1
		text := rendered(t, func(w io.Writer) error { return reports.JUnit(w, res) })
		if failed := strings.Contains(text, `type="parity"`); failed == c.passes {
			t.Errorf("%s: failed is %v in\n%s", name, failed, text)
		}
		if c.passes && !strings.Contains(text, "passed, although the outputs differ: they part at token 3") {
			t.Errorf("%s: nothing is said of it in\n%s", name, text)
		}
	}
}
