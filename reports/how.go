package reports

import (
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
)

// timesSections have the bars of times and rates, and what engines and servers report of themselves.
func timesSections(res *compare.Result) []section {
	return []section{{ID: "times", Title: "Time and speed", For: onPage, Across: "quad", Words: []string{barWords},
		Draw: func(v *view) []chart {
			var out []chart
			for _, r := range figure.Columns(func(r *figure.Row) bool { return r.Bar[0] != "" }) {
				out = append(out, bars(r.Bar[0], r.Name, r.Bar[1])(v)...)
			}
			return out
		}},
		{ID: "reported", Title: "What the engines report of themselves", For: onPage, Grid: reported(res),
			Words: []string{"The engines' own clocks and counts, beside ours."}},
		{ID: "server", Title: "What the server reports of itself", For: onPage, Grid: server(res), Words: []string{
			"Reported while the server worked: the highest value, or for a counter its increase."}}}
}

func reported(res *compare.Result) *grid {
	head := []string{"cell", "name in the engine", "reported by the engine", "measured by llmparity"}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		for _, f := range c.Reported {
			ours := "–"
			if o := c.Figure(f.Beside); f.Beside != "" && o.Known() {
				ours = strings.TrimSpace(num(o.Center()) + " " + o.Unit + " (" + o.Title + ")")
			}
			add(line(f.Name), strings.TrimSpace(known(f)+" "+f.Unit), ours)
		}
	})
}

// server lists what servers report of themselves.
func server(res *compare.Result) *grid {
	head := []string{"cell", "figure", "median", "launches", "what it is", "what the method cannot see"}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		for _, f := range c.Server {
			value := "–"
			if f.Known() {
				value = strings.TrimSpace(num(f.Center()) + " " + f.Unit)
			}
			add(line(f.Title), value, strconv.Itoa(f.N), line(f.Method+": "+f.How), line(f.Blind))
		}
	})
}

// howSections say how each figure was obtained and what measuring cost.
func howSections(res *compare.Result) []section {
	if len(res.Cells) == 0 {
		return nil
	}
	head := []string{"cell"}
	for _, f := range res.Cells[0].Sampler {
		head = append(head, f.Title+" ("+f.Unit+")")
	}
	sampler := perCell(res, head, func(c *compare.Cell, add func(...string)) {
		var row []string
		for _, f := range c.Sampler {
			row = append(row, known(f))
		}
		add(row...)
	})
	how := explained(res, func(c *compare.Cell) []evidence.Figure { return slices.Concat(c.Figures, c.Sampler) })
	how.ID, how.Title = "how", "How each figure was obtained"
	return []section{how, {ID: "sampler", Title: "Cost of measuring", For: onPage, Grid: sampler}}
}

// explained is a table on the page of each figure of all cells.
func explained(res *compare.Result, of func(*compare.Cell) []evidence.Figure) section {
	return explainedFor(res, func(add func(string, ...evidence.Figure)) {
		for i := range res.Cells {
			add(res.Cells[i].Label, of(&res.Cells[i])...)
		}
	})
}

// explainedFor says once for all cells with the same explanation what a figure is.
func explainedFor(res *compare.Result, all func(add func(cell string, figures ...evidence.Figure))) section {
	type row [4]string
	var rows []row
	cells, order := map[row][]string{}, map[string]int{} // order: by the first mention of a figure
	all(func(cell string, figures ...evidence.Figure) {
		for _, f := range figures {
			words := f.How
			if !f.Known() {
				words = f.Absent
			}
			r := row{line(f.Title), orDash(f.From()), line(words), orDash(line(f.Blind))}
			if cells[r] == nil {
				rows = append(rows, r)
			}
			if !slices.Contains(cells[r], cell) {
				cells[r] = append(cells[r], cell)
			}
			if _, seen := order[r[0]]; !seen {
				order[r[0]] = len(order)
			}
		}
	})
	slices.SortStableFunc(rows, func(a, b row) int { return order[a[0]] - order[b[0]] })
	t := &grid{Head: []string{"figure", "from", "what it is, or why it is missing",
		"what the method cannot see", "cells"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, append(r[:], line(everyCell(res, cells[r]))))
	}
	return section{Title: "What each figure is, and what its method cannot see", For: onPage, Folded: true,
		Grid: t.orNil()}
}
