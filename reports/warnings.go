package reports

import (
	"slices"
	"strings"

	"llmparity/compare"
)

// warned has every warning once, with all that it is about: what is said of each of thirty cells would bury the rest.
func warned(res *compare.Result) []compare.Warning {
	var out []compare.Warning
	var about [][]string
	for _, w := range res.Warnings {
		at := slices.IndexFunc(out, func(o compare.Warning) bool { return o.Warning == w.Warning })
		if at < 0 {
			at = len(out)
			out, about = append(out, w), append(about, nil)
		}
		if !slices.Contains(about[at], w.Where) {
			about[at] = append(about[at], w.Where)
		}
	}
	for i := range out {
		out[i].Where = everyCell(res, about[i])
	}
	return out
}

// everyCell says so in place of the names of all cells.
func everyCell(res *compare.Result, names []string) string {
	if len(names) > 2 && len(names) == len(res.Cells) &&
		!slices.ContainsFunc(res.Cells, func(c compare.Cell) bool { return !slices.Contains(names, c.Label) }) {
		return "every cell"
	}
	return strings.Join(names, "; ")
}

// pairRows is how many pairs of cells are told of one by one.
const pairRows = 120

// pairGrid tells of each pair of cells what is otherwise said of many at once; nil where there are no more than two.
func pairGrid(res *compare.Result) *grid {
	if len(res.Comparisons) < 3 {
		return nil
	}
	t := &grid{Name: "What may be compared, a row a pair of cells",
		Head: []string{"cell", "and cell", "a ratio?", "what differs"}}
	for _, c := range res.Comparisons[:min(len(res.Comparisons), pairRows)] {
		ratio := "yes"
		switch {
		case c.Refused != "":
			ratio = "no: " + c.Refused
		case len(c.Different) > 0:
			ratio = "asked for, and marked: " + strings.Join(c.Different, "; ")
		}
		t.Rows = append(t.Rows, []string{line(res.Cells[c.A].Label), line(res.Cells[c.B].Label), line(ratio),
			line(strings.Join(c.Caveats, "; "))})
	}
	return t
}
