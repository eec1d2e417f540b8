//go:build !race

package reports_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"llmparity/compare"
	"llmparity/compare/comparetest"
	"llmparity/internal/record"
)

// delayed is an engine of which requests wait for so much longer than usual, in ms, one after another.
func delayed(id int, vary float64, ms ...float64) comparetest.Engine {
	e := comparetest.Native(len(ms))
	e.Cell.ID, e.Vary = id, vary
	e.Cell.PromptID, e.Cell.Prompt = id, strings.Repeat("once ", id) // each is set against nothing
	n := 0
	e.Usage = func(u *record.Usage) {
		u.Sent = u.Sent.Add(-time.Duration(ms[n] * 1e6))
		u.Spans[0].Begin = u.Sent
		n++
	}
	return e
}

// unsteady are engines whose launches are not alike, each in another way.
func unsteady() []comparetest.Engine {
	return []comparetest.Engine{
		delayed(1, 0.01, 1, 2, 3, 4, 5, 6, 7, 8),
		delayed(2, 0.01, 8, 7, 6, 5, 4.5, 4, 3),
		delayed(3, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5),
		delayed(4, 0, 1, 1, 1, 1, 1, 1, 1, 1),
		delayed(5, 0.01, 0, 0, 0, 300, 0, 0, 900, 0, 0, 0, 0, 0),
		delayed(6, 0, 0, 0, 0, 0, 0, 0, 0.1, 9),
		delayed(7, 0.25, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		delayed(8, 0.01, 1, 20, 3, 40, 5),
		delayed(9, 0.02, 3, 1, 2, 5, 4, 6),
		delayed(10, 0.01, 1, 2, 3, 4, 6, 5),
	}
}

// Warnings of launches that are not alike are those of the record.
func TestMarksAreThoseOfTheRecord(t *testing.T) {
	res := reportAgain(t, comparetest.Write(t, t.TempDir(), "folder", unsteady()...))
	seen := map[string]int{}
	for _, c := range res.Cells {
		for _, f := range c.Figures {
			for _, w := range f.Warnings {
				seen[w.Code]++
			}
		}
	}
	for _, code := range []string{compare.Outliers, compare.Trend, compare.NoisyFigure} {
		if seen[code] < 5 {
			t.Errorf("%d warnings %s", seen[code], code)
		}
	}
}

func TestWrongMarksAreFound(t *testing.T) {
	folder := workedOut(t, comparetest.Write(t, t.TempDir(), "folder", unsteady()[:7]...), compare.Defaults())
	warning := func(r *compare.Result, cell int, code string) *record.Warning {
		for i := range r.Cells[cell].Figures {
			f := &r.Cells[cell].Figures[i]
			if at := slices.IndexFunc(f.Warnings, func(w record.Warning) bool { return w.Code == code }); at >= 0 {
				f.Warnings = slices.Clone(f.Warnings)
				return &f.Warnings[at]
			}
		}
		t.Fatalf("cell %d has no %s", cell, code)
		return nil
	}
	replace := func(cell int, code, from, to string) func(*compare.Result) {
		return func(r *compare.Result) {
			w := warning(r, cell, code)
			text := strings.Replace(w.Text, from, to, 1)
			if text == w.Text {
				t.Errorf("%q has no %q", w.Text, from)
			}
			w.Text = text
		}
	}
	for says, change := range map[string]func(*compare.Result){
		"there are 0 warnings trend": func(r *compare.Result) { warning(r, 0, compare.Trend).Code = "drift" },
		"there are 1 warnings noisy": func(r *compare.Result) {
			r.Cells[3].Figures[0].Warnings = []record.Warning{{Code: compare.NoisyFigure}}
		},
		"there are 0 warnings outliers":       func(r *compare.Result) { warning(r, 4, compare.Outliers).Code = "" },
		"of the warning trend: it says":       replace(1, compare.Trend, "p = 0.000", "p = 0.001"),
		"of the warning trend: it says \"+":   replace(1, compare.Trend, "-", "+"),
		"behind \"the farthest \"":            replace(4, compare.Outliers, "the farthest ", "the farthest 1"),
		"behind \"(attempt \"":                replace(4, compare.Outliers, "(attempt ", "(attempt 1"),
		"of the warning noisy: it says":       replace(6, compare.NoisyFigure, "vary by ", "vary by 1"),
		"of the warning outliers: it says \"": replace(4, compare.Outliers, "2 of 12", "1 of 12"),
	} {
		folder.finds(t, says, change, false)
	}
}
