package section

import (
	"fmt"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/cost"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// How to read what a browser costs.
const (
	costWords  = "Times are how many times as long, or as much, the page takes, with 95% CI. The whole is the product of its shares."
	costMethod = "The cells compute with one library on the processor, from one file, with as many threads and a KV cache of one dtype. " +
		"A native build without wider vectors than the page's tells the vectors' share; what is left is the browser's, its compiler's and " +
		"that of another version of the library, which nothing here tells apart. The intervals are bootstraps over launches, uncorrected."
)

// costSection takes apart what a browser costs.
func costSection(res *compare.Result) Section {
	s := Section{ID: "cost", Title: "What the browser costs", Words: []string{costWords},
		Method: []string{costMethod}, Draw: chart.CostBars}
	for _, c := range res.Costs {
		s.Lines = append(s.Lines, plain.Line(answer.CostSentence(res, c)))
		s.Parts = append(s.Parts, Section{Title: plain.Line(res.Cells[c.Browser].Label), Grid: costGrid(res, c)})
	}
	if len(s.Parts) == 1 {
		s.Grid, s.Parts = s.Parts[0].Grid, nil
	}
	if len(res.Costs) == 0 {
		return Section{}
	}
	return s
}

// costGrid has a row a figure.
func costGrid(res *compare.Result, c *cost.Cost) *plain.Grid {
	cells := []int{c.Native}
	if c.Narrow != nil {
		cells = append(cells, *c.Narrow)
	}
	g := &plain.Grid{Name: "What the browser costs", Head: []string{"figure"}}
	cells = append(cells, c.Browser)
	for _, at := range cells {
		g.Head = append(g.Head, plain.Line(res.Cells[at].Label))
	}
	g.Head = append(g.Head, "browser, times")
	if c.Narrow != nil {
		g.Head = append(g.Head, "of it vectors", "of it browser")
	}
	for _, row := range c.Rows {
		unit := ""
		texts := []string{}
		for _, at := range cells {
			f := res.Cells[at].Figure(row.Figure)
			unit = f.Unit
			texts = append(texts, plain.Known(f))
		}
		line := append([]string{Headed(figure.Title(row.Figure), unit)}, texts...)
		line = append(line, timesWords(&row.Whole))
		if c.Narrow != nil {
			line = append(line, timesWords(row.Vectors), timesWords(row.Rest))
		}
		g.Rows = append(g.Rows, line)
	}
	return g
}

func timesWords(t *cost.Times) string {
	if t == nil {
		return "–"
	}
	text := explain.Amount(t.Times)
	if t.Interval != nil {
		text += fmt.Sprintf(" (%s to %s)", explain.Amount(t.Interval.Lo), explain.Amount(t.Interval.Hi))
	}
	return text
}
