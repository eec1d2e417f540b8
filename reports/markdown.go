package reports

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"llmparity/compare"
)

// Markdown writes the result for a comment or a document, in GitHub's dialect: what the terminal's table shows, with
// the same digits. What others named can't format anything, link anywhere or call anybody.
func Markdown(w io.Writer, res *compare.Result) error {
	m := &markdown{res: res}
	title, subtitle := titles(res)
	m.b.WriteString("## " + inert(title) + "\n\n" + inert(subtitle) + "\n")
	for _, v := range res.Verdict {
		m.b.WriteString("\n" + inert(line(v)) + "\n")
	}
	if res.Gate != nil {
		m.b.WriteString("\n### Gate\n")
		m.gate(res.Gate)
	}
	m.summary()
	if g := points(res); g != nil {
		m.b.WriteString("\n### Memory at three points\n\n")
		m.grid(g)
	}
	if g := componentGrid(res); g != nil {
		m.b.WriteString("\n### Where the memory goes\n\n")
		m.grid(g)
		m.list("Where these figures come from", origins(res))
	}
	t := &table{res: res}
	m.list("Risk of running out of memory", risks(res))
	m.list("What may be compared", res.Comparability)
	m.list(growthTitle, growthLines(res))
	m.list("Parity", t.parity())
	m.ratios()
	words := newRatiosPart(res)
	if words.MoreWords > 0 {
		words.InWords = append(words.InWords,
			fmt.Sprintf("And %d more, which the tables have in numbers.", words.MoreWords))
	}
	m.list("The same in words", words.InWords)
	m.list("Warnings", t.warnings())
	_, err := io.WriteString(w, m.b.String())
	return err
}

type markdown struct {
	res *compare.Result
	b   strings.Builder
}

// summary has the terminal's columns, and the digits of both.
func (m *markdown) summary() {
	if len(m.res.Cells) == 0 {
		return
	}
	g := &grid{Head: []string{"cell", "launches counted"}}
	for _, c := range columns() {
		g.Head = append(g.Head, c.Head+" ("+c.Unit+")")
	}
	g.Head = append(g.Head, "tokens identical")
	t := &table{res: m.res}
	for i := range m.res.Cells {
		g.Rows = append(g.Rows, t.row(i))
	}
	m.b.WriteString("\n### Summary\n\n")
	m.grid(g)
	m.b.WriteString("\n" + originsWords +
		" Median over counted launches; ±: the wider side of the median's 95 % interval; (n=…): too few runs for one.\n")
	if t.marked() {
		m.b.WriteString("\n!: outliers, a trend, noise (a robust standard deviation above a tenth of the median) or a busy machine; the warnings name them.\n")
	}
	for _, e := range m.res.Engines() {
		if e.With != "" {
			m.b.WriteString("\n- " + inert(line(e.Name+": "+e.With)))
		}
	}
	m.b.WriteString("\n")
}

// ratios are the tables of the page.
func (m *markdown) ratios() {
	p := newRatiosPart(m.res)
	for _, f := range p.Families {
		m.b.WriteString("\n### " + inert(line(f.Title)) + "\n\n")
		m.grid(f.Grid)
		m.b.WriteString("\n" + inert(f.Words) + "\n")
		if len(f.Notes) > 0 {
			m.b.WriteString("\n")
		}
		for _, n := range f.Notes {
			m.b.WriteString("- " + inert(line(n)) + "\n")
		}
	}
	if p.Groups != nil {
		m.b.WriteString("\n### Groups of cells\n\n")
		m.grid(p.Groups)
	}
	if len(p.Families) > 0 {
		m.b.WriteString("\n" + inert(p.Words) + "\n")
	}
}

func (m *markdown) grid(g *grid) {
	write := func(row []string) {
		for _, field := range row {
			m.b.WriteString("| " + inert(field) + " ")
		}
		m.b.WriteString("|\n")
	}
	write(g.Head)
	for _, c := range g.Columns() {
		m.b.WriteString(map[bool]string{false: "|---", true: "|--:"}[c.Number])
	}
	m.b.WriteString("|\n")
	for _, row := range g.Rows {
		write(row)
	}
}

func (m *markdown) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(&m.b, "\n### %s\n\n", title)
	for _, l := range lines {
		m.b.WriteString("- " + inert(line(l)) + "\n")
	}
}

// inert makes a text one that is shown as it stands: no mark formats, no address becomes a link, no name calls anybody.
func inert(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\n", " "))
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case strings.ContainsRune("\\`*[]>|~&$", r), r == '_' && !within(s, i), i == firstMark(s):
			b.WriteString("\\" + string(r))
		case r == '@', r == ':' && strings.HasPrefix(s[i:], "://"), r == '.' && i >= 3 &&
			strings.EqualFold(s[i-3:i], "www"):
			b.WriteString(string(r) + "<!-- -->") // what comes behind it is no part of a name or an address
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// within tells whether a mark has letters or digits on both sides, where an underscore is one.
func within(s string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at+1:])
	letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return letter(before) && letter(after)
}

// firstMark is where a text would begin a heading, a list or a rule; -1 where it does not.
func firstMark(s string) int {
	if s != "" && strings.ContainsRune("#+-=", rune(s[0])) {
		return 0
	}
	rest := strings.TrimLeft(s, "0123456789")
	if at := len(s) - len(rest); at > 0 && rest != "" && (rest[0] == '.' || rest[0] == ')') &&
		(len(rest) == 1 || rest[1] == ' ') {
		return at
	}
	return -1
}
