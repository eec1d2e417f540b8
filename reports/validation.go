package reports

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"llmparity/compare"
	"llmparity/internal/figure"
)

// ValidationTable writes how well memory was foretold for a terminal.
func ValidationTable(w io.Writer, v *compare.Validation) error {
	var b strings.Builder
	for _, s := range sections(v) {
		if s.title != "" {
			b.WriteString(s.title + "\n\n")
		}
		plain(&b, narrow(s.grid))
		b.WriteByte('\n')
	}
	b.WriteString(wrap(validationWords(v), "", "", width))
	for _, n := range remarks(v) {
		b.WriteString(wrap(n, "! ", "  ", width))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ValidationMarkdown writes the same as a document has it.
func ValidationMarkdown(w io.Writer, v *compare.Validation) error {
	var b strings.Builder
	for _, s := range sections(v) {
		if s.title != "" {
			b.WriteString("### " + s.title + "\n\n")
		}
		b.WriteString("| " + strings.Join(escaped(s.grid.Head), " | ") + " |\n|" +
			strings.Repeat("---|", len(s.grid.Head)) + "\n")
		for _, row := range s.grid.Rows {
			b.WriteString("| " + strings.Join(escaped(row), " | ") + " |\n")
		}
		b.WriteByte('\n')
	}
	b.WriteString(validationWords(v) + "\n")
	for _, n := range remarks(v) {
		b.WriteString("\n- " + strings.ReplaceAll(n, "<", "&lt;") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ValidationJSON writes it for machines.
func ValidationJSON(w io.Writer, v *compare.Validation) error { return writeJSON(w, v) }

type section struct {
	title string
	grid  *grid
}

func validationWords(v *compare.Validation) string {
	cells := len(v.Cells)
	return fmt.Sprintf("%s with a forecast and a measurement, in %s. Errors are the forecast's, in percent of what was measured; bias is their mean with signs: + where "+
		"too much is foretold. A cell's worst error is the largest in multiples of what is expected of such calculations in general; * is outside the range that was foretold.%s",
		several(cells, "cell"), several(v.Runs-v.Without, "run"), belowZero(v))
}

// belowZero says what a number in brackets is, where there is one.
func belowZero(v *compare.Validation) string {
	if !slices.ContainsFunc(v.Components, func(e compare.ComponentError) bool { return e.N < e.Cells }) {
		return ""
	}
	return " What was measured below zero, as a remainder may be, has no error in percent: in brackets the number of cells that have one."
}

func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func remarks(v *compare.Validation) []string {
	var out []string
	if v.Without > 0 {
		is := "have"
		if v.Without == 1 {
			is = "has"
		}
		out = append(out, fmt.Sprintf("%s %s no cell of which memory was both foretold and measured.",
			several(v.Without, "run"), is))
	}
	for _, why := range v.Absent {
		out = append(out, line(why)+".")
	}
	for _, b := range v.Broken {
		out = append(out, "left out, because it can't be read: "+line(b.Error))
	}
	return out
}

func sections(v *compare.Validation) []section {
	out := []section{{"Errors by component" + alone(v), errorGrid(v.Components)}}
	for _, by := range []struct {
		title, name string
		groups      []compare.ErrorGroup
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
		out = append(out, section{by.title, g})
	}
	return append(out, section{"Cells, the worst first", cellErrors(v)})
}

// alone names what all cells have in common, which has no table of its own.
func alone(v *compare.Validation) string {
	words := ""
	if len(v.Engines) == 1 {
		words += ", " + line(v.Engines[0].Name)
	}
	if len(v.Contexts) == 1 {
		words += ", context " + line(v.Contexts[0].Name)
	}
	return words
}

func errorHead() []string {
	return []string{"component", "cells", "median error", "bias", "largest", "in range", "expected"}
}

func errorGrid(list []compare.ComponentError) *grid {
	g := &grid{Head: errorHead()}
	for _, e := range list {
		row := []string{e.Title, fmt.Sprint(e.Cells), "-", "-", "-", fmt.Sprintf("%.0f%%", 100*e.Within), "-"}
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

// cellErrors has a row a cell: the error of each component, the worst first.
func cellErrors(v *compare.Validation) *grid {
	columns := [][2]string{{"weights", figure.ModelWeights}, {"KV", figure.KVCache},
		{"activations", figure.Activations},
		{"everything else", figure.FrameworkOverhead}, {"increase", figure.MemoryIncrease},
		{"total", figure.TotalMemory}}
	g := &grid{Head: []string{"run", "cell", "model", "context"}}
	for _, c := range columns {
		g.Head = append(g.Head, c[0])
	}
	g.Head = append(g.Head, "worst")
	for i := range v.Cells {
		c := &v.Cells[i]
		row := []string{line(filepath.Base(c.Dir)), line(c.Label), line(c.Model), fmt.Sprint(c.Context)}
		for _, col := range columns {
			text := "-"
			if p, ok := c.Prediction.Part(col[1]); ok {
				text = errorMark(p)
			}
			row = append(row, text)
		}
		worst := "-"
		if c.WorstName != "" {
			worst = fmt.Sprintf("%s, %.1f×", figure.Title(c.WorstName), c.Worst)
		}
		g.Rows = append(g.Rows, append(row, worst))
	}
	return g
}

// narrow shortens what is long in a table for a terminal: names that others chose.
func narrow(g *grid) *grid {
	out := &grid{Head: g.Head}
	for _, row := range g.Rows {
		short := make([]string, len(row))
		for i, s := range row {
			short[i] = shorten(s, 28)
		}
		out.Rows = append(out.Rows, short)
	}
	return out
}

// escaped keeps a bar in a name from ending its field, and what looks like an element from being one.
func escaped(row []string) []string {
	out := make([]string, len(row))
	for i, s := range row {
		out[i] = strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(s)
	}
	return out
}

// plain writes a table whose numbers stand to the right.
func plain(b *strings.Builder, g *grid) {
	widths := make([]int, len(g.Head))
	for _, row := range append([][]string{g.Head}, g.Rows...) {
		for i, s := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(s))
		}
	}
	for n, row := range append([][]string{g.Head}, g.Rows...) {
		for i, s := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s))
			if numeric(g, i) {
				s = pad + s
			} else {
				s += pad
			}
			row = append(row[:i:i], append([]string{s}, row[i+1:]...)...)
		}
		b.WriteString(strings.TrimRight(strings.Join(row, "  "), " ") + "\n")
		if n == 0 {
			b.WriteString(strings.Repeat("-", total(widths)) + "\n")
		}
	}
}

// numeric tells whether a column holds numbers.
func numeric(g *grid, column int) bool {
	for _, row := range g.Rows {
		if s := row[column]; s != "" && s != "-" {
			return strings.ContainsRune("+-±0123456789", []rune(s)[0])
		}
	}
	return false
}
