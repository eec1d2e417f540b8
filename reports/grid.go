package reports

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"llmparity/compare"
)

// grid is a table: the words of a chart, or figures of their own. The page sorts and filters it.
type grid struct {
	Name    string   // accessible name; empty: made of its columns
	Head    []string // a terminal breaks a title at a line's end, and before a unit in brackets
	Rows    [][]string
	Cells   []int // whose each row is, where rows begin with labels of cells
	Legend  []legend
	Grouped bool // rows of one name in the first column belong together
}

// legend says of cells that have it in common what stands behind their names.
type legend struct {
	Cells      []int
	Name, With string
}

// perCell is a table of each cell's rows, which begin with its label; nil where there are none.
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

// once adds a row that is not there yet.
func (t *grid) once(row ...string) {
	if !slices.ContainsFunc(t.Rows, func(have []string) bool { return slices.Equal(have, row) }) {
		t.Rows = append(t.Rows, row)
	}
}

// orNil is the table, unless it is empty.
func (t *grid) orNil() *grid {
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// named gives a table a name that has none.
func named(t *grid, name string) *grid {
	if t == nil || t.Name != "" {
		return t
	}
	out := *t
	out.Name = name
	return &out
}

// without leaves columns out of which no row has anything.
func (t *grid) without(empty func(column int) bool) *grid {
	out := *t
	out.Head, out.Rows = nil, make([][]string, len(t.Rows))
	for i, title := range t.Head {
		if empty(i) {
			continue
		}
		out.Head = append(out.Head, title)
		for n, row := range t.Rows {
			out.Rows[n] = append(out.Rows[n], row[i])
		}
	}
	return &out
}

// oneLine is a column's title where there is room for it.
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

// LongNames tells that rows are named in more letters than a narrow column has room for.
func (t *grid) LongNames() bool {
	return slices.ContainsFunc(t.Rows, func(row []string) bool {
		return len(row) > 0 &&
			utf8.RuneCountInString(row[0]) > 44
	})
}

// column is a table's column: one of numbers stands to the right.
type column struct {
	Title  string
	Number bool
}

// Columns of the table. Numbers are in one where every row that has anything there has a short text that begins with a
// number, words in brackets behind it aside. Dashes stand where there is none, a ~ for no difference.
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

// leading is a number at the begin of a text, alone or before a blank, a unit in brackets, a percent sign, a comma
// between several.
var leading = regexp.MustCompile(`^[<>±+]?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?:[\s%,;*)]|$)`)

// plainNumber is one that JavaScript reads as it stands.
var plainNumber = regexp.MustCompile(`^-?\d+(?:\.\d+)?$`)

// ownKey is the key where the text is not the number itself.
func ownKey(text string) string {
	if plainNumber.MatchString(text) {
		return ""
	}
	return sortKey(text)
}

// sortKey is the number by which the page sorts a text, as JavaScript reads one; empty: it is sorted as a text.
func sortKey(text string) string {
	m := leading.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}
