package section

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/ship"
	"llmparity/compare/verdict"
	"llmparity/internal/figure"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// How to read forms of a model.
const (
	shipWords = "Peak memory, time to first token and decode are medians over launches. " +
		"Perplexity is compared with %s's, window by window, in %s; 95%% CI in parentheses."
	shipMethod = "Recommended is the form with the least peak memory in %s of those whose perplexity rises by at most %s: " +
		"the upper end of the paired interval counts. Memory differs by Mann-Whitney's test, corrected by Holm; " +
		"where it does not, the smallest download is recommended."
)

// shipSections are tables of forms of one model.
func shipSections(res *compare.Result) Section {
	s := Section{ID: "ship", Title: "Which form to ship", Draw: chart.Forms}
	for _, t := range res.Forms {
		part := Section{Title: plain.Line(t.Request), Grid: ShipGrid(res, t, false)}
		of, by := plain.Line(t.Forms[t.Reference].Name), plain.Line(t.Engines[t.By].Name)
		words := "Peak memory, time to first token and decode are medians over launches."
		if t.Quality >= 0 {
			words = fmt.Sprintf(shipWords, of, plain.Line(t.Engines[t.Quality].Name))
		}
		part.Words = []string{words}
		part.Method = []string{fmt.Sprintf(shipMethod, by, percent(t.Tolerance)+"%")}
		s.Parts = append(s.Parts, part)
	}
	if len(s.Parts) == 1 {
		only := s.Parts[0]
		s.Words, s.Method, s.Grid, s.Parts = only.Words, only.Method, only.Grid, nil
	}
	return s
}

// shipColumn is a figure of an engine.
type shipColumn struct {
	title, unit string
	of          func(*compare.Cell) evidence.Figure
}

var shipColumns = []shipColumn{
	{"peak", "MiB", func(c *compare.Cell) evidence.Figure { return c.Points().Peak }},
	{"first token", "ms", func(c *compare.Cell) evidence.Figure { return c.Figure(figure.TTFT) }},
	{"decode", "tokens/s", func(c *compare.Cell) evidence.Figure { return c.Figure(figure.DecodeTPS) }},
}

// ShipGrid has a row a form. A compact one has no intervals but that of perplexity, and of several engines no time to
// first token.
func ShipGrid(res *compare.Result, t *ship.Table, compact bool) *plain.Grid {
	g := &plain.Grid{Name: "Forms of " + plain.Line(t.Model), Head: []string{"form", Headed("download", "MiB")}}
	columns := slices.Clone(shipColumns)
	if compact && len(t.Engines) > 1 {
		columns = slices.DeleteFunc(columns, func(c shipColumn) bool { return c.unit == "ms" })
	}
	for _, e := range t.Engines {
		for _, c := range columns {
			title := c.title
			if len(t.Engines) > 1 {
				title = plain.Line(e.Name) + " " + title
			}
			g.Head = append(g.Head, Headed(title, c.unit))
		}
	}
	if t.Quality >= 0 {
		g.Head = append(g.Head, "perplexity", Headed("quality", fmt.Sprintf("within %.3g%%", 100*t.Tolerance)))
	}
	for i := range t.Forms {
		f := &t.Forms[i]
		row := []string{plain.Line(f.Name), plain.Num(float64(f.DownloadB) / (1 << 20))}
		if i == t.Choice.Form && t.Choice.By.Scored() {
			row[0] += " *"
		}
		for _, at := range f.Cells {
			row = append(row, shipFigures(res, at, columns, compact)...)
		}
		if t.Quality >= 0 {
			row = append(row, shipPerplexity(res, t, i), cmp.Or(strings.ReplaceAll(string(f.Quality), "-", " "), "–"))
		}
		g.Rows = append(g.Rows, row)
	}
	if t.Choice.By.Scored() { // size alone recommends nothing
		g.Legend = []string{"* recommended"}
	}
	return g
}

// shipFigures are the fields of one engine; cell is -1 if the form did not run there.
func shipFigures(res *compare.Result, cell int, columns []shipColumn, compact bool) (row []string) {
	for _, c := range columns {
		text := "–"
		if cell >= 0 {
			if of := c.of(res.Cells[cell]); of.Known() && compact {
				text = plain.Num(of.Center())
			} else if of.Known() {
				text = plain.Num(of.Center()) + " " + plain.Spread(of)
			}
		}
		row = append(row, text)
	}
	return row
}

// shipPerplexity is the reference form's perplexity, or another form's change from it.
func shipPerplexity(res *compare.Result, t *ship.Table, form int) string {
	f := &t.Forms[form]
	switch c := f.Change; {
	case form == t.Reference:
		return plain.Num(res.Cells[f.Cells[t.Quality]].Figure(figure.Perplexity).Center())
	case c == nil:
		return "–"
	case c.Interval == nil:
		return verdict.FineSigned(c.Share)
	default:
		return fmt.Sprintf("%s (%s to %s)", verdict.FineSigned(c.Share), verdict.FineSigned(c.Interval.Lo),
			verdict.FineSigned(c.Interval.Hi))
	}
}
