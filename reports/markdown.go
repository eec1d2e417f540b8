package reports

import (
	"cmp"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/internal/gates"
	"llmparity/reports/chart"
	"llmparity/reports/paper"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// Markdown writes the result for a comment or a document, in GitHub's dialect: what the terminal's table shows, with
// the same digits. What others named can't format anything, link anywhere or call anybody.
func Markdown(w io.Writer, res *compare.Result) error {
	a := answer.Of(res)
	head := "## " + inert(plain.Line(a.Title)) + "\n\n" + inert(plain.Line(a.Sub())) + "\n"
	return writeMarkdown(w, head, slices.Concat([]section.Section{section.Verdict(res, a)},
		section.All(&chart.View{Res: res}), []section.Section{paper.Section(res)}))
}

// markdown is the text of a document.
type markdown struct{ strings.Builder }

func writeMarkdown(w io.Writer, head string, all []section.Section) error {
	var m markdown
	m.WriteString(head)
	for _, s := range section.ShownTo(all, section.Document) {
		m.section(s, "###")
	}
	_, err := io.WriteString(w, strings.TrimPrefix(m.String(), "\n"))
	return err
}

func (m *markdown) section(s section.Section, level string) {
	end := ""
	switch {
	case s.Folded:
		m.WriteString("\n<details><summary>" + inert(plain.Line(s.Title)) + "</summary>\n")
		end = "\n</details>\n"
	case s.Title != "":
		m.WriteString("\n" + level + " " + inert(plain.Line(s.Title)) + "\n")
	}
	if s.Grid != nil {
		m.grid(s.Grid)
	}
	for _, words := range s.Words {
		m.WriteString("\n" + inert(plain.Line(words)) + "\n")
	}
	if s.Mark != "" {
		m.list(s.Lines)
	} else {
		sign := ""
		switch {
		case s.Sign != "":
			sign = "**" + s.Sign + ".** "
		case s.Strong != "":
			sign = "**" + inert(s.Strong) + "** "
		}
		for _, l := range s.Lines {
			m.WriteString("\n" + sign + inert(plain.Line(l)) + "\n")
			sign = ""
		}
	}
	if code, ok := s.Data.(paper.Code); ok {
		m.code(string(code))
	}
	for _, part := range s.Parts {
		m.section(part, level+"#")
	}
	m.WriteString(end)
}

// code writes a fenced block, with a fence that the text cannot end.
func (m *markdown) code(text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	m.WriteString("\n" + fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n")
}

func (m *markdown) grid(g *plain.Grid) {
	m.WriteByte('\n')
	write := func(row []string) {
		for _, field := range row {
			m.WriteString("| " + inert(field) + " ")
		}
		m.WriteString("|\n")
	}
	columns := g.Columns()
	var head []string
	rule := ""
	for _, c := range columns {
		head, rule = append(head, c.Title), rule+map[bool]string{false: "|---", true: "|--:"}[c.Number]
	}
	write(head)
	m.WriteString(rule + "|\n")
	for _, row := range g.Rows {
		write(row)
	}
	m.list(g.Legend)
}

func (m *markdown) list(lines []string) {
	if len(lines) > 0 {
		m.WriteByte('\n')
	}
	for _, l := range lines {
		m.WriteString("- " + inert(plain.Line(l)) + "\n")
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

// GateMarkdown writes a gate's outcome for a comment, or the summary of a step, in at most 12 lines: the worst figure,
// what to do, and other checks, those that do not pass first. It is one line if all pass.
func GateMarkdown(w io.Writer, g *gates.Outcome) error {
	if g = new(*g); filepath.IsAbs(g.Run.Dir) {
		g.Run.Dir = filepath.Base(g.Run.Dir) // a comment shows no folder of the machine
	}
	strip := section.NewStrip(g)
	var m markdown
	run := inert(plain.Line(g.Run.Name))
	if g.Baseline != nil {
		run += " against " + inert(plain.Line(cmp.Or(g.Baseline.Stored, g.Baseline.Name)))
	}
	sentence := func(parts ...string) string { return inert(plain.Joined("; ", parts...)) + "." }
	output := explain.Lower(g.Output)
	if g.Status == gates.Passed {
		m.WriteString("**" + inert(strip.Strong()) + "** " +
			inert(plain.Joined("; ", strip.Rest, strip.Others, output)) +
			" (" + run + ")\n")
		_, err := io.WriteString(w, m.String())
		return err
	}
	m.WriteString("### " + inert(strip.Sign+": "))
	if strip.Worst != "" {
		m.WriteString(" **" + inert(strip.Worst) + "** ")
	}
	m.WriteString(inert(strip.Rest) + "\n\n" + run + ": " + sentence(strip.Sides(), output, strip.After()) + "\n")
	others := section.OtherChecks(g, strip.Check, section.MostChecks)
	if others != nil {
		m.grid(others)
		m.WriteByte('\n')
	}
	if strip.Unlisted != "" {
		m.WriteString(sentence(strip.Unlisted) + "\n")
	}
	_, err := io.WriteString(w, m.String())
	return err
}

// ValidationMarkdown writes the errors of memory predictions as a document.
func ValidationMarkdown(w io.Writer, v *memory.Validation) error {
	return writeMarkdown(w, "", section.Validation(v))
}
