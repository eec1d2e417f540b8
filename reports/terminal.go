package reports

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"llmparity/compare"
	"llmparity/compare/memory"
	"llmparity/internal/gates"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// width is what tables may take.
const width = 120

// Details writes all sections for a terminal: plain text, which a file or a pipe can take as well.
func Details(w io.Writer, res *compare.Result) error {
	a := res.Answer()
	head := plain.Wrap(a.Title, "", "", width) + plain.Wrap(a.Sub(), "", "", width) + "\n"
	return writeTerminal(w, head, section.All(&chart.View{Res: res}))
}

// terminal is the text that a terminal shows.
type terminal struct {
	strings.Builder
	width    int
	numbered bool // rows carry their cells' numbers, because names had to be shortened
}

func writeTerminal(w io.Writer, head string, all []section.Section) error {
	t := terminal{width: width}
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
		t.WriteString(plain.Wrap(s.Title, "", "  ", t.width))
	}
	if s.Grid != nil {
		t.grid(s.Grid)
	}
	for _, words := range s.Words {
		t.WriteString(plain.Wrap(words, "", "", t.width))
	}
	for _, l := range s.Lines {
		t.WriteString(plain.Wrap(l, s.Mark, strings.Repeat(" ", len(s.Mark)), t.width))
	}
	said := s.Grid != nil || len(s.Words)+len(s.Lines) > 0
	for i, part := range s.Parts {
		if part.Title != "" || part.Grid != nil && (said || i > 0) {
			t.WriteByte('\n')
		}
		t.section(part)
	}
}

// grid writes a table: names to the left, numbers to the right. Of what is grouped each name stands above its rows.
func (t *terminal) grid(g *plain.Grid) {
	var titles []string
	if g.Grouped {
		titles, g = ungrouped(g)
	}
	head, rows := headLines(g), g.Rows
	widths := widthsOf(append(head, rows...))
	for most := 44; total(widths) > t.width && most >= 16; most-- {
		rows = shortened(g, most)
		widths = widthsOf(append(head, rows...))
	}
	const least = 8
	// numbers before short names would take what cutting them gives
	if over := total(widths) - t.width; over > 0 && widths[0] > least && g.Cells != nil {
		// Shortened names may be equal: the numbers before them are not, and the names stand below in full.
		t.numbered = true
		for i, row := range rows {
			row[0] = plain.Shorten(number(g.Cells[i])+row[0], max(least, widths[0]-over))
		}
		widths = widthsOf(append(head, rows...))
	}
	columns := g.Columns()
	for _, row := range head {
		t.row(row, widths, columns)
	}
	t.WriteString(strings.Repeat("-", total(widths)) + "\n")
	for i, row := range rows {
		if titles != nil && (i == 0 || titles[i] != titles[i-1]) {
			t.WriteString(plain.Wrap(titles[i], "", "  ", t.width))
		}
		t.row(row, widths, columns)
	}
	for _, l := range g.Legend {
		t.legend(l)
	}
}

// legend says what stands behind names: no figure means anything without it.
func (t *terminal) legend(l plain.Legend) {
	name := l.Name
	if t.numbered {
		for i := len(l.Cells) - 1; i >= 0; i-- {
			name = number(l.Cells[i]) + name
		}
	}
	if l.With != "" || t.numbered {
		t.WriteString(plain.Wrap(name+": "+l.With, "", "  ", t.width))
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

func number(cell int) string { return fmt.Sprintf("[%d] ", cell+1) }

// ungrouped is a table without its first column, which has the titles of rows.
func ungrouped(g *plain.Grid) (titles []string, rest *plain.Grid) {
	rest = &plain.Grid{Head: append([]string{""}, g.Head[2:]...)}
	for i := range rest.Head {
		rest.Head[i] = lastOf(rest.Head[i], 18)
	}
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

// shortened are a table's rows with short fields, but for the names of cells.
func shortened(g *plain.Grid, most int) [][]string {
	out := make([][]string, len(g.Rows))
	for i, row := range g.Rows {
		for n, field := range row {
			if n > 0 || g.Cells == nil {
				field = plain.Shorten(field, most)
			}
			out[i] = append(out[i], field)
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

// lastOf cuts a name where it begins: paths tell runs apart by their ends.
func lastOf(s string, width int) string {
	if letters := []rune(s); len(letters) > width {
		return "…" + string(letters[len(letters)-width+1:])
	}
	return s
}

// GateTable writes a gate's outcome for a terminal.
func GateTable(w io.Writer, g *gates.Outcome) error {
	s := section.Gate(g)
	s.Title = ""
	return writeTerminal(w, "", []section.Section{s})
}

// ValidationTable writes the errors of memory predictions for a terminal.
func ValidationTable(w io.Writer, v *memory.Validation) error {
	return writeTerminal(w, "", section.Validation(v))
}
