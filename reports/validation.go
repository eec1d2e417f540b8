package reports

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/words"
)

// ValidationTable writes the errors of memory predictions for a terminal.
func ValidationTable(w io.Writer, v *memory.Validation) error {
	return writeTerminal(w, "", validationSections(v))
}

// ValidationMarkdown writes the errors of memory predictions as a document.
func ValidationMarkdown(w io.Writer, v *memory.Validation) error {
	return writeMarkdown(w, "", validationSections(v))
}

func validationWords(v *memory.Validation) string {
	cells := len(v.Cells)
	return fmt.Sprintf("%s with a prediction and a measurement, in %s. Errors are those of the prediction, relative to the measurement; bias is their mean: + means "+
		"predicted too high. A cell's worst error is the largest as a multiple of the typical error of such calculations; * marks measurements outside the predicted range.%s",
		words.Count(cells, "cell"), words.Count(v.Runs-v.Without, "run"), belowZero(v))
}

// belowZero explains a number in brackets, if there is one.
func belowZero(v *memory.Validation) string {
	if !slices.ContainsFunc(v.Components, func(e memory.ComponentError) bool { return e.N < e.Cells }) {
		return ""
	}
	return " Measurements below zero have no error in percent; the number of cells that have one is in brackets."
}

func remarks(v *memory.Validation) []string {
	var out []string
	if v.Without > 0 {
		is := "have"
		if v.Without == 1 {
			is = "has"
		}
		out = append(out, fmt.Sprintf("%s %s no cell with both a prediction and a measurement.",
			words.Count(v.Without, "run"), is))
	}
	for _, why := range v.Absent {
		out = append(out, line(why)+".")
	}
	for _, b := range v.Broken {
		out = append(out, "left out, because it cannot be read: "+line(b.Error))
	}
	return out
}

func validationSections(v *memory.Validation) []section {
	out := []section{{Title: "Errors by component", Grid: errorGrid(v.Components)}}
	for _, by := range []struct {
		title, name string
		groups      []memory.ErrorGroup
	}{{"By engine", "engine", v.Engines}, {"By context", "context", v.Contexts}} {
		if len(by.groups) < 2 {
			continue // the same as all together
		}
		g := &grid{Head: append([]string{by.name}, errorHead()...)}
		for _, group := range by.groups {
			for _, row := range errorGrid(group.Components).Rows {
				g.Rows = append(g.Rows, append([]string{line(group.Name)}, row...))
			}
		}
		out = append(out, section{Title: by.title, Grid: g})
	}
	return append(out, section{Title: "Cells, worst first", Grid: cellErrors(v),
		Words: []string{validationWords(v)},
		Lines: remarks(v), Mark: "! "})
}

func errorHead() []string {
	return []string{"component", "cells", "median error", "bias", "largest", "in range", "typical"}
}

func errorGrid(list []memory.ComponentError) *grid {
	g := &grid{Head: errorHead()}
	for _, e := range list {
		row := []string{e.Title, fmt.Sprint(e.Cells), "–", "–", "–", fmt.Sprintf("%.0f%%", 100*e.Within), "–"}
		if e.N < e.Cells {
			row[1] += fmt.Sprintf(" (%d)", e.N)
		}
		if s := e.ErrorSizes; s != nil {
			row[2], row[3], row[4] = fmt.Sprintf("%.1f%%", s.Median), signed(s.Bias), fmt.Sprintf("%.1f%%", s.Max)
		}
		if e.Expected != nil {
			row[6] = fmt.Sprintf("±%g%%", e.Expected.Variance)
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// cellErrors has one row per cell with the error of each component, worst first.
func cellErrors(v *memory.Validation) *grid {
	columns := slices.DeleteFunc(components(), func(col *figure.Row) bool {
		return col.Name == figure.KVCacheUsed || col.Name == figure.BrowserShare || col.Name == figure.MultiGPUOverhead
	})
	g := &grid{Head: append(append([]string{"run", "cell", "model", "context"}, headsOf(columns)...), "worst")}
	for i := range v.Cells {
		c := &v.Cells[i]
		row := []string{line(filepath.Base(c.Dir)), line(c.Label), line(c.Model), fmt.Sprint(c.Context)}
		for _, col := range columns {
			text := "–"
			if p, ok := c.Prediction.Part(col.Name); ok {
				text = errorMark(p)
			}
			row = append(row, text)
		}
		worst := "–"
		if c.WorstName != "" {
			worst = fmt.Sprintf("%.1f× (%s)", c.Worst, figure.Title(c.WorstName))
		}
		g.Rows = append(g.Rows, append(row, worst))
	}
	return g
}
