package reports

import (
	"cmp"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/answer"
	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/internal/gates"
	"llmparity/internal/kit/safe"
	"llmparity/reports/chart"
	"llmparity/reports/paper"
	"llmparity/reports/plain"
	"llmparity/reports/section"
)

// Markdown writes the result for a comment or a document, in GitHub's dialect: what the terminal's table shows, with
// the same digits. What others named can't format anything, link anywhere or call anybody.
func Markdown(w io.Writer, res *compare.Result) error {
	a := answer.Of(res)
	head := "## " + safe.Markdown(plain.Line(a.Title)) + "\n\n" + safe.Markdown(plain.Line(a.Sub())) + "\n"
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
		m.WriteString("\n<details><summary>" + safe.Markdown(plain.Line(s.Title)) + "</summary>\n")
		end = "\n</details>\n"
	case s.Title != "":
		m.WriteString("\n" + level + " " + safe.Markdown(plain.Line(s.Title)) + "\n")
	}
	if s.Grid != nil {
		m.grid(s.Grid)
	}
	for _, words := range s.Words {
		m.WriteString("\n" + safe.Markdown(plain.Line(words)) + "\n")
	}
	if s.Mark != "" {
		m.list(s.Lines)
	} else {
		sign := ""
		switch {
		case s.Sign != "":
			sign = "**" + s.Sign + ".** "
		case s.Strong != "":
			sign = "**" + safe.Markdown(s.Strong) + "** "
		}
		for _, l := range s.Lines {
			m.WriteString("\n" + sign + safe.Markdown(plain.Line(l)) + "\n")
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
			m.WriteString("| " + safe.Markdown(field) + " ")
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
		m.WriteString("- " + safe.Markdown(plain.Line(l)) + "\n")
	}
}

// GateMarkdown writes a gate's outcome for a comment, or the summary of a step, in at most 12 lines: the worst figure,
// what to do, and other checks, those that do not pass first. It is one line if all pass.
func GateMarkdown(w io.Writer, g *gates.Outcome) error {
	if g = new(*g); filepath.IsAbs(g.Run.Dir) {
		g.Run.Dir = filepath.Base(g.Run.Dir) // a comment shows no folder of the machine
	}
	strip := section.NewStrip(g)
	var m markdown
	run := safe.Markdown(plain.Line(g.Run.Name))
	if g.Baseline != nil {
		run += " against " + safe.Markdown(plain.Line(cmp.Or(g.Baseline.Stored, g.Baseline.Name)))
	}
	sentence := func(parts ...string) string { return safe.Markdown(plain.Joined("; ", parts...)) + "." }
	output := explain.Lower(g.Output)
	if g.Status == gates.Passed {
		m.WriteString("**" + safe.Markdown(strip.Strong()) + "** " +
			safe.Markdown(plain.Joined("; ", strip.Rest, strip.Others, output)) +
			" (" + run + ")\n")
		_, err := io.WriteString(w, m.String())
		return err
	}
	m.WriteString("### " + safe.Markdown(strip.Sign+": "))
	if strip.Worst != "" {
		m.WriteString(" **" + safe.Markdown(strip.Worst) + "** ")
	}
	m.WriteString(safe.Markdown(strip.Rest) + "\n\n" + run + ": " +
		sentence(strip.Sides(), output, strip.After()) + "\n")
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
