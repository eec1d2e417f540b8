package reports

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// grid is a table: the words of a chart, or figures of their own. The page sorts and filters it.
type grid struct {
	Name string // what it shows, for those who don't see it; empty: told from its columns
	Head []string
	Rows [][]string
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

// without leaves a column out that no row has anything in.
func (t *grid) without(title string) *grid {
	at := slices.Index(t.Head, title)
	if at < 0 || slices.ContainsFunc(t.Rows, func(row []string) bool { return row[at] != "" }) {
		return t
	}
	out := &grid{Name: t.Name, Head: slices.Delete(slices.Clone(t.Head), at, at+1)}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, slices.Delete(slices.Clone(row), at, at+1))
	}
	return out
}

// Caption is the table's name, or its columns.
func (t *grid) Caption() string {
	if t.Name != "" {
		return t.Name
	}
	return "Table: " + strings.Join(t.Head, ", ")
}

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
// number, words in brackets behind it aside. Dashes stand where there is none, a ~ where it is not told from others.
func (t *grid) Columns() []column {
	out := make([]column, len(t.Head))
	for i, title := range t.Head {
		out[i] = column{title, i > 0 && t.numbers(i)}
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
