package truth

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// words are the verdicts in tables.
var words = map[Verdict]string{Sees: "yes", Blind: "no", Other: "other"}

// text is a cell for people.
func (c Cell) text() string {
	if c.MiB == nil {
		return "-"
	}
	s := strings.Replace(fmt.Sprintf("%.1f %s", *c.MiB, words[c.Verdict]), "-0.0 ", "0.0 ", 1)
	if c.Wrong {
		s += " !"
	}
	return s
}

// columnWidth is what a kind's name is wrapped to.
const columnWidth = 12

// columns are as many kinds as stand beside each other in a terminal.
const columns = 5

// Text is the matrix for a terminal: tables below each other.
func (m Matrix) Text() string {
	var tables []string
	for from := 0; from < len(m.Kinds); from += columns {
		tables = append(tables, m.text(from, min(from+columns, len(m.Kinds))))
	}
	return strings.Join(tables, "\n")
}

func (m Matrix) text(from, to int) string {
	kinds := m.Kinds[from:to]
	heads, height := make([][]string, len(kinds)), 0
	for i, k := range kinds {
		heads[i] = wrap(k.Name, columnWidth)
		height = max(height, len(heads[i]))
	}
	first := 0
	for _, l := range m.Lines {
		first = max(first, utf8.RuneCountInString(l.label()))
	}
	var b strings.Builder
	line := func(head string, cells func(i int) string) {
		row := fmt.Sprintf("%-*s", first, head)
		for i := range kinds {
			row += fmt.Sprintf("  %*s", columnWidth, cells(i))
		}
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	for h := range height {
		head := ""
		if h == height-1 {
			head = fmt.Sprintf("MiB for %g MiB of", m.size)
		}
		line(head, func(i int) string {
			if at := h - height + len(heads[i]); at >= 0 {
				return heads[i][at]
			}
			return ""
		})
	}
	for _, l := range m.Lines {
		line(l.label(), func(i int) string { return l.Cells[from+i].text() })
	}
	return b.String()
}

func (l Line) label() string { return l.Who + " " + l.Figure }

// wrap breaks text into lines at blanks; a word that is longer stays whole.
func wrap(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if n := len(lines); n > 0 && len(lines[n-1])+1+len(word) <= width {
			lines[n-1] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
