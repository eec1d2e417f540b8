package reports

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/memory"
	"llmparity/internal/gates"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// width is what lines may take: every terminal has room for it. Tables fold fields that are too long for it, break
// words only if they must, and cut none. What has too many columns is written as two tables.
const width = 100

// Details writes all sections for a terminal: plain text, which a file or a pipe can take as well.
func Details(w io.Writer, res *compare.Result) error {
	a := answer.Of(res)
	head := plain.Wrap(a.Title, "", "", width) + plain.Wrap(a.Sub(), "", "", width) + "\n"
	return writeTerminal(w, head, append([]section.Section{section.Verdict(res, a)},
		section.All(&chart.View{Res: res})...))
}

// terminal is the text that a terminal shows.
type terminal struct{ strings.Builder }

func writeTerminal(w io.Writer, head string, all []section.Section) error {
	var t terminal
	t.WriteString(head)
	for _, s := range section.ShownTo(all, section.InTerminal) {
		t.WriteByte('\n')
		t.section(s)
	}
	_, err := io.WriteString(w, strings.TrimPrefix(t.String(), "\n"))
	return err
}

func (t *terminal) section(s section.Section) {
	if s.Title != "" {
		t.WriteString(plain.Wrap(s.Title, "", "  ", width))
	}
	if s.Grid != nil {
		t.grid(s.Grid)
	}
	for _, words := range s.Words {
		t.WriteString(plain.Wrap(words, "", "", width))
	}
	for _, l := range s.Lines {
		t.WriteString(plain.Wrap(l, s.Mark, strings.Repeat(" ", len(s.Mark)), width))
	}
	said := s.Grid != nil || len(s.Words)+len(s.Lines) > 0
	for i, part := range s.Parts {
		if part.Title != "" || part.Grid != nil && (said || i > 0) {
			t.WriteByte('\n')
		}
		t.section(part)
	}
}

// longestTitle is how many columns a title takes before it is folded.
const longestTitle = 60

// grid writes a table: names to the left, numbers to the right. Of what is grouped each name stands above its rows.
func (t *terminal) grid(g *plain.Grid) {
	var titles []string
	whole := g
	if g.Grouped {
		titles, g = ungrouped(g)
	}
	head, rows := slices.Concat(folded(headLines(g), longestTitle, 0)...), folded(g.Rows, 1<<20, 0)
	widths := widthsOf(append(head, slices.Concat(rows...)...))
	for _, word := range []int{24, 0} { // names of runs have up to 24 letters
		for most := 44; total(widths) > width && most >= 8; most-- {
			rows = folded(g.Rows, most, word)
			widths = widthsOf(append(head, slices.Concat(rows...)...))
		}
	}
	if total(widths) > width && len(g.Head) > 3 {
		names, n := len(whole.Head)-len(g.Head)+1, len(whole.Head)
		t.grid(columnsOf(whole, names, names, (names+n+1)/2))
		t.WriteByte('\n')
		right := columnsOf(whole, names, (names+n+1)/2, n)
		right.Legend = whole.Legend
		t.grid(right)
		return
	}
	columns := g.Columns()
	for _, row := range head {
		t.row(row, widths, columns)
	}
	t.WriteString(strings.Repeat("-", total(widths)) + "\n")
	for i, lines := range rows {
		if titles != nil && (i == 0 || titles[i] != titles[i-1]) {
			t.WriteString(plain.Wrap(titles[i], "", "  ", width))
		}
		for _, line := range lines {
			t.row(line, widths, columns)
		}
	}
	for _, l := range g.Legend {
		t.WriteString(plain.Wrap(l, "", "  ", width))
	}
}

func (t *terminal) row(row []string, widths []int, columns []plain.Column) {
	var text strings.Builder
	for i, field := range row {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(field))
		if columns[i].Number {
			text.WriteString(pad + field + "  ")
		} else {
			text.WriteString(field + pad + "  ")
		}
	}
	t.WriteString(strings.TrimRight(text.String(), " ") + "\n")
}

// ungrouped is a table without its first column, which has the titles of rows.
func ungrouped(g *plain.Grid) (titles []string, rest *plain.Grid) {
	rest = &plain.Grid{Head: append([]string{""}, g.Head[2:]...)}
	for _, row := range g.Rows {
		titles = append(titles, row[0])
		rest.Rows = append(rest.Rows, append([]string{"  " + row[1]}, row[2:]...))
	}
	return titles, rest
}

// headLines are one line or two: a unit stands below what it is of.
func headLines(g *plain.Grid) [][]string {
	upper, lower := make([]string, len(g.Head)), make([]string, len(g.Head))
	two := false
	for i, title := range g.Head {
		above, below, split := strings.Cut(title, "\n")
		if name, unit, ok := strings.Cut(title, " ("); !split && ok {
			above, below, split = name, strings.TrimSuffix(unit, ")"), true
		}
		if !split {
			above, below = "", title
		}
		upper[i], lower[i], two = above, below, two || split
	}
	if !two {
		return [][]string{lower}
	}
	return [][]string{upper, lower}
}

// columnsOf is a table's first columns, which have the names, with some of the others.
func columnsOf(g *plain.Grid, names, from, to int) *plain.Grid {
	out := &plain.Grid{Grouped: g.Grouped}
	of := func(row []string) []string { return slices.Concat(row[:names], row[from:to]) }
	out.Head = of(g.Head)
	for _, row := range g.Rows {
		out.Rows = append(out.Rows, of(row))
	}
	return out
}

// folded are the lines of each row. A field longer than most takes several; words of so many letters are whole.
func folded(rows [][]string, most, word int) [][][]string {
	out := make([][][]string, len(rows))
	for i, row := range rows {
		for n, field := range row {
			parts := []string{field}
			if utf8.RuneCountInString(field) > most {
				wide := most
				for w := range strings.FieldsSeq(field) {
					if n := utf8.RuneCountInString(w); n <= word {
						wide = max(wide, n)
					}
				}
				parts = plain.Fold(field, wide)
			}
			for k, part := range parts {
				if k == len(out[i]) {
					out[i] = append(out[i], make([]string, len(row)))
				}
				out[i][k][n] = part
			}
		}
	}
	return out
}

func widthsOf(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, field := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(field))
		}
	}
	return widths
}

func total(widths []int) int {
	n := 2 * (len(widths) - 1)
	for _, w := range widths {
		n += w
	}
	return n
}

// GateTable writes a gate's outcome for a terminal.
func GateTable(w io.Writer, g *gates.Outcome) error {
	s, strip := section.Gate(g), section.NewStrip(g)
	s.Title = ""
	head := plain.Wrap(strip.Line(), "", "  ", width)
	if g.Status != gates.Passed {
		head += plain.Wrap(strip.After(), "", "  ", width)
	}
	return writeTerminal(w, head, []section.Section{s})
}

// ValidationTable writes the errors of memory predictions for a terminal.
func ValidationTable(w io.Writer, v *memory.Validation) error {
	return writeTerminal(w, "", section.Validation(v))
}
