// Package plain has what reports write with: numbers, names of others made safe to look at, and tables. It escapes
// nothing for HTML or Markdown: their writers do.
package plain

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"llmparity/compare"
)

// Grid is a table. The page sorts and filters it.
type Grid struct {
	Name    string   // accessible name; empty: made of its columns
	Head    []string // a terminal breaks a title at a line's end, and before a unit in brackets
	Rows    [][]string
	Legend  []string // lines below it
	Grouped bool     // rows of one name in the first column belong together
	First   bool     // the page does not fold it: it shows the first rows of a long one
}

// PerCell is a table of each cell's rows, which begin with its label; nil without rows.
func PerCell(res *compare.Result, head []string, rows func(c *compare.Cell, add func(...string))) *Grid {
	t := &Grid{Head: head}
	for _, c := range res.Cells {
		rows(c, func(fields ...string) {
			t.Rows = append(t.Rows, append([]string{Line(c.Label)}, fields...))
		})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// OrNil is the table, or nil if it is empty.
func (t *Grid) OrNil() *Grid {
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// Named gives a name to a table without one.
func Named(t *Grid, name string) *Grid {
	if t == nil || t.Name != "" {
		return t
	}
	out := *t
	out.Name = name
	return &out
}

// OneLine is a column's title without line breaks.
func OneLine(title string) string {
	return strings.ReplaceAll(strings.ReplaceAll(title, "-\n", ""), "\n", " ")
}

// Caption is the table's name, or its columns.
func (t *Grid) Caption() string {
	if t.Name != "" {
		return t.Name
	}
	return "Table: " + OneLine(strings.Join(t.Head, ", "))
}

// Long tells that the page folds the table.
func (t *Grid) Long() bool { return !t.First && len(t.Rows) > 12 }

// Column is a table's column; numbers are aligned right.
type Column struct {
	Title  string
	Number bool
}

// Columns of the table. A column has numbers if all its fields are short and begin with one; remarks in brackets,
// dashes and ~ do not count.
func (t *Grid) Columns() []Column {
	out := make([]Column, len(t.Head))
	for i, title := range t.Head {
		out[i] = Column{OneLine(title), i > 0 && t.numbers(i)}
	}
	return out
}

func (t *Grid) numbers(col int) bool {
	some := false
	for _, row := range t.Rows {
		if col >= len(row) || row[col] == "" || row[col] == "-" || row[col] == "~" || strings.HasPrefix(row[col], "–") {
			continue
		}
		if before, _, _ := strings.Cut(row[col], " ("); SortKey(before) == "" || utf8.RuneCountInString(before) > 24 {
			return false
		}
		some = true
	}
	return some
}

// leading is a number at the start of a text.
var leading = regexp.MustCompile(`^[<>±+]?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?:[\s%,;*!)]|$)`)

// plainNumber is one that JavaScript reads as it is.
var plainNumber = regexp.MustCompile(`^-?\d+(?:\.\d+)?$`)

// OwnKey is the sort key if the text is not itself a number.
func OwnKey(text string) string {
	if plainNumber.MatchString(text) {
		return ""
	}
	return SortKey(text)
}

// SortKey is the number that the page sorts a text by; empty for other texts.
func SortKey(text string) string {
	m := leading.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}
