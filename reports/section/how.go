package section

import (
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// timesSections have the bars of times and rates, and what engines and servers report of themselves.
func timesSections(res *compare.Result) []Section {
	return []Section{{ID: "times", Title: "Time and speed", For: OnPage, Across: "quad", Words: []string{barWords},
		Draw: func(v *chart.View) []chart.Chart {
			var out []chart.Chart
			for _, r := range figure.Columns(func(r *figure.Row) bool { return r.Bar[0] != "" }) {
				out = append(out, chart.Bars(r.Bar[0], r.Name, r.Bar[1])(v)...)
			}
			return out
		}},
		{ID: "reported", Title: "What the engines report of themselves", For: OnPage, Grid: reported(res),
			Words: []string{"Times and counts that the engines report, beside those of llmparity."}},
		{ID: "server", Title: "What the server reports of itself", For: OnPage, Grid: server(res), Words: []string{
			"Reported while the server worked: the highest value, or for a counter its increase."}}}
}

func reported(res *compare.Result) *plain.Grid {
	head := []string{"cell", "engine's name for the figure", "value from the engine", "value from llmparity"}
	return plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
		for _, f := range c.Reported {
			ours := "–"
			if o := c.Figure(f.Beside); f.Beside != "" && o.Known() {
				ours = strings.TrimSpace(plain.Num(o.Center()) + " " + o.Unit + " (" + o.Title + ")")
			}
			add(plain.Line(f.Name), strings.TrimSpace(plain.Known(f)+" "+f.Unit), ours)
		}
	})
}

// server lists what servers report of themselves.
func server(res *compare.Result) *plain.Grid {
	head := []string{"cell", "figure", "median", "launches", "what it is", "what the method cannot see"}
	return plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
		for _, f := range c.Server {
			value := "–"
			if f.Known() {
				value = strings.TrimSpace(plain.Num(f.Center()) + " " + f.Unit)
			}
			add(plain.Line(f.Title), value, strconv.Itoa(f.N), plain.Line(f.Method+": "+f.How), plain.Line(f.Blind))
		}
	})
}

// howSections say how each figure was obtained and what measuring cost.
func howSections(res *compare.Result) []Section {
	if len(res.Cells) == 0 {
		return nil
	}
	head := []string{"cell"}
	for _, f := range res.Cells[0].Sampler {
		head = append(head, f.Title+" ("+f.Unit+")")
	}
	sampler := plain.PerCell(res, head, func(c *compare.Cell, add func(...string)) {
		var row []string
		for _, f := range c.Sampler {
			row = append(row, plain.Known(f))
		}
		add(row...)
	})
	how := explained(res, func(c *compare.Cell) []evidence.Figure { return slices.Concat(c.Figures, c.Sampler) })
	how.ID, how.Title = "how", "How each figure was obtained"
	return []Section{how, {ID: "sampler", Title: "Cost of measuring", For: OnPage, Grid: sampler}}
}

// explained is a table on the page of each figure of all cells.
func explained(res *compare.Result, of func(*compare.Cell) []evidence.Figure) Section {
	var all []ofCell
	for _, c := range res.Cells {
		all = append(all, ofCell{c.Label, of(c)})
	}
	return explainedFor(res, all)
}

// ofCell are figures of a cell, or of a sweep.
type ofCell struct {
	cell    string
	figures []evidence.Figure
}

// explainedFor says once for all cells with the same explanation what a figure is.
func explainedFor(res *compare.Result, all []ofCell) Section {
	type row [4]string
	var cells evidence.Groups[row, string]
	order := map[string]int{} // by the first mention of a figure
	for _, of := range all {
		for _, f := range of.figures {
			words := f.How
			if !f.Known() {
				words = f.Absent
			}
			r := row{plain.Line(f.Title), plain.OrDash(f.From()), plain.Line(words), plain.OrDash(plain.Line(f.Blind))}
			evidence.AddNew(&cells, r, of.cell)
			if _, seen := order[r[0]]; !seen {
				order[r[0]] = len(order)
			}
		}
	}
	slices.SortStableFunc(cells.Keys, func(a, b row) int { return order[a[0]] - order[b[0]] })
	t := &plain.Grid{Head: []string{"figure", "from", "what it is, or why it is missing",
		"what the method cannot see", "cells"}}
	for r, which := range cells.All() {
		t.Rows = append(t.Rows, append(r[:], plain.Line(res.EveryCell(which))))
	}
	return Section{Title: "What each figure is, and what its method cannot see", For: OnPage, Folded: true,
		Grid: t.OrNil()}
}
