package reports

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/internal/figure"
)

// Words that say how to read the short table; of errors only where there are such.
const (
	componentsWords = "MiB, medians over launches. What is left of the increase is everything else, with the errors of all the rest."
	errorsWords     = " Foretold: before the first launch, by arithmetic alone. Error: the forecast's, in percent of what was found; + is too much, " +
		"* outside the range that was foretold."
	moreWords = " `llmparity report DIR --details` has methods, ranges, and where the memory is by process and part; so has the HTML report."
)

// found is what a row of a run's own figures is called: not all of them were measured.
const found = "in the run"

// fewWords is how many sentences on forecasts the short table has below it.
const fewWords = 6

const errorRow = "error"

// components is where the memory goes, a row a cell, and below it what was foretold and how far that was off.
func (t *table) components() {
	columns := componentColumns(t.res)
	rows, cells := [][]string{{"", ""}, {"cell", ""}}, []int{}
	for _, col := range columns {
		rows[0], rows[1] = append(rows[0], col[0]), append(rows[1], col[1])
	}
	for i := range t.res.Cells {
		for _, row := range componentRows(columns, &t.res.Cells[i], len(t.res.Cells) <= manyCells) {
			rows, cells = append(rows, row), append(cells, i)
		}
	}
	notes := recommendations(t.res)
	if len(cells)+len(notes) == 0 {
		return
	}
	t.b.WriteString("\nMemory by component\n")
	if len(cells) > 0 {
		words := componentsWords
		if slices.ContainsFunc(rows, func(row []string) bool { return row[1] == errorRow }) {
			words += errorsWords
		}
		t.print(rows, cells)
		t.b.WriteString(wrap(words+moreWords, "", "", width))
	}
	if more := len(notes) - fewWords; more > 0 {
		notes = append(notes[:fewWords:fewWords],
			fmt.Sprintf("%d more such sentences are in the details and in the report.", more))
	}
	for _, n := range slices.Concat(origins(t.res), negative(t.res), notes) {
		t.b.WriteString(wrap(n, "- ", "  ", width))
	}
}

// componentColumns leave out what several GPUs take where there are none, and what a browser's own is where no cell has
// that.
func componentColumns(res *compare.Result) [][3]string {
	var out [][3]string
	for _, col := range partColumns() {
		some := col[2] != figure.MultiGPUOverhead && col[2] != figure.BrowserShare
		for i := range res.Cells {
			c := &res.Cells[i]
			reported, _ := c.Prediction.Part(col[2])
			some = some || c.Parts.Component(col[2]).Center() > 0 || reported.Best != nil && *reported.Best > 0
		}
		if some {
			out = append(out, col)
		}
	}
	return out
}

// componentRows are a cell's: found, foretold and the error, as far as there are such; of many cells only what was
// found and the error.
func componentRows(columns [][3]string, c *compare.Cell, all bool) [][]string {
	own, predicted, off := []string{line(c.Label), found}, []string{line(c.Label), "foretold"},
		[]string{line(c.Label), errorRow}
	reported, compared := false, false
	for _, col := range columns {
		f, best := c.Parts.Shown(col[2]).Figure, "-"
		own = append(own, strings.ReplaceAll(held(f, c.Launches), "–", "-"))
		p := predictedOf(c, col[2])
		if p.Measured != nil && *p.Measured != f.Center() && col[2] != figure.BrowserShare {
			p = compare.Predicted{} // foretold of something else than the column's
		}
		if p.Best != nil {
			best, reported = mib(*p.Best), true
		}
		predicted, off = append(predicted, best), append(off, errorMark(p))
		compared = compared || p.Error != nil
	}
	var out [][]string
	if c.Parts != nil {
		out = append(out, own)
	}
	if reported && (all || c.Refused != "") {
		out = append(out, predicted)
	}
	if compared {
		out = append(out, off)
	}
	return out
}

// predictedOf is what was foretold of a column's component. What a browser takes is foretold as a whole, which stands
// in the column of its own.
func predictedOf(c *compare.Cell, name string) compare.Predicted {
	own := c.Parts.Component(figure.BrowserShare).Known()
	switch {
	case own && name == figure.FrameworkOverhead:
		return compare.Predicted{}
	case own && name == figure.BrowserShare:
		name = figure.FrameworkOverhead
	}
	p, _ := c.Prediction.Part(name)
	return p
}

// errorMark is an error, marked where what was measured is outside the range that was foretold.
func errorMark(p compare.Predicted) string {
	text := errorText(p, "-")
	if p.Within != nil && !*p.Within {
		text += "*"
	}
	return text
}

// componentGrid is the page's table, a row a cell.
func componentGrid(res *compare.Result) *grid {
	columns := componentColumns(res)
	t := &grid{Head: []string{"cell"}}
	for _, col := range columns {
		t.Head = append(t.Head, partName(col[2])+" (MiB)")
	}
	t.Head = append(t.Head, "confidence")
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Parts == nil {
			continue
		}
		row := []string{line(c.Label)}
		for _, col := range columns {
			row = append(row, held(c.Parts.Shown(col[2]).Figure, c.Launches))
		}
		t.Rows = append(t.Rows, append(row, c.Parts.Confidence))
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}
