package reports

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"llmparity/compare"
)

// grid is a table. The page sorts and filters it.
type grid struct {
	Name    string   // accessible name; empty: made of its columns
	Head    []string // a terminal breaks a title at a line's end, and before a unit in brackets
	Rows    [][]string
	Cells   []int // whose each row is, where rows begin with labels of cells
	Legend  []legend
	Grouped bool // rows of one name in the first column belong together
}

// legend is what cells have in common.
type legend struct {
	Cells      []int
	Name, With string
}

// perCell is a table of each cell's rows, which begin with its label; nil without rows.
func perCell(res *compare.Result, head []string, rows func(c *compare.Cell, add func(...string))) *grid {
	t := &grid{Head: head}
	for i := range res.Cells {
		c := &res.Cells[i]
		rows(c, func(fields ...string) {
			t.Rows, t.Cells = append(t.Rows, append([]string{line(c.Label)}, fields...)), append(t.Cells, i)
		})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// orNil is the table, or nil if it is empty.
func (t *grid) orNil() *grid {
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// named gives a name to a table without one.
func named(t *grid, name string) *grid {
	if t == nil || t.Name != "" {
		return t
	}
	out := *t
	out.Name = name
	return &out
}

// oneLine is a column's title without line breaks.
func oneLine(title string) string {
	return strings.ReplaceAll(strings.ReplaceAll(title, "-\n", ""), "\n", " ")
}

// Caption is the table's name, or its columns.
func (t *grid) Caption() string {
	if t.Name != "" {
		return t.Name
	}
	return "Table: " + oneLine(strings.Join(t.Head, ", "))
}

// Long tells that the page folds the table.
func (t *grid) Long() bool { return len(t.Rows) > 12 }

// column is a table's column; numbers are aligned right.
type column struct {
	Title  string
	Number bool
}

// Columns of the table. A column has numbers if all its fields are short and begin with one; remarks in brackets,
// dashes and ~ do not count.
func (t *grid) Columns() []column {
	out := make([]column, len(t.Head))
	for i, title := range t.Head {
		out[i] = column{oneLine(title), i > 0 && t.numbers(i)}
	}
	return out
}

func (t *grid) numbers(col int) bool {
	some := false
	for _, row := range t.Rows {
		if col >= len(row) || row[col] == "" || row[col] == "-" || row[col] == "~" || strings.HasPrefix(row[col], "–") {
			continue
		}
		if before, _, _ := strings.Cut(row[col], " ("); sortKey(before) == "" || utf8.RuneCountInString(before) > 24 {
			return false
		}
		some = true
	}
	return some
}

// leading is a number at the start of a text.
var leading = regexp.MustCompile(`^[<>±+]?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?:[\s%,;*)]|$)`)

// plainNumber is one that JavaScript reads as it is.
var plainNumber = regexp.MustCompile(`^-?\d+(?:\.\d+)?$`)

// ownKey is the sort key if the text is not itself a number.
func ownKey(text string) string {
	if plainNumber.MatchString(text) {
		return ""
	}
	return sortKey(text)
}

// sortKey is the number that the page sorts a text by; empty for other texts.
func sortKey(text string) string {
	m := leading.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}
