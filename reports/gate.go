package reports

import (
	"fmt"
	"strings"

	"llmparity/internal/gates"
)

const gateWords = "A limit is broken where the 95% interval of the median lies wholly beyond it, or, of launches too few for an interval, every " +
	"launch. Against the baseline run a check fails where the figure is significantly worse than its tolerance: the p-value, after Holm's " +
	"correction for all of the gate's questions, is at most 0.05 and the 99% interval of the change lies wholly beyond the tolerance. The null " +
	"hypothesis of p is that the figure has changed by exactly the tolerance. A check passes where the 90% interval excludes a regression as large as " +
	"it must detect. All else is inconclusive."

// gateSection is what came of a run's gate: a line a check in a terminal, elsewhere a table of what does not simply
// pass.
func gateSection(g *gates.Outcome) section {
	if g == nil {
		return section{}
	}
	head := []string{"cell", "status", "what is wanted", "measured", "baseline run", "change", "why"}
	checks := &grid{Name: "Checks of the gate that do not simply pass", Head: head}
	passed := &grid{Name: "Checks of the gate that pass", Head: head}
	for i := range g.Checks {
		into := checks
		if g.Checks[i].Status == gates.Passed {
			into = passed
		}
		into.Rows = append(into.Rows, gateRow(&g.Checks[i]))
	}
	notes := append(gateSides(g), lines(g.Notes)...)
	return section{ID: "gate", Title: "Gate", Sign: gateSign(g.Status), Lines: []string{line(g.Verdict)},
		Parts: []section{
			{For: inTerminal, Lines: append(gateLines(g), notes...), Mark: "- "},
			{For: document | onPage, Grid: checks.orNil()},
			{Title: fmt.Sprintf("%d checks pass", len(passed.Rows)), For: document | onPage, Folded: true,
				Grid: passed.orNil()},
			{For: document | onPage, Words: []string{gateWords}, Lines: notes, Mark: "- "}}}
}

// gateSides says what was held against what.
func gateSides(g *gates.Outcome) []string {
	if g.Baseline == nil {
		return []string{"There is no baseline run."}
	}
	b, name := g.Baseline, line(g.Baseline.Name)
	if b.Stored != "" {
		name = fmt.Sprintf("%s (%s)", line(b.Stored), name)
	}
	words := fmt.Sprintf("Baseline run: %s of %s", name, b.Started.Format("2 January 2006, 15:04 MST"))
	if b.SHA256 != "" {
		words += ", sha256 " + line(b.SHA256[:min(12, len(b.SHA256))])
	}
	if g.Interleaved {
		words += "; launches of both runs took turns"
	}
	if len(g.UnderTest) > 0 {
		words += "; under test: " + line(strings.Join(g.UnderTest, ", "))
	}
	switch g.Tests {
	case 0:
		return []string{words + "; no figure is held against it."}
	case 1:
		return []string{words + "; one figure is held against it."}
	}
	return []string{fmt.Sprintf("%s; Holm corrects for %d questions.", words, g.Tests)}
}

func gateRow(c *gates.Check) []string {
	row := []string{line(c.Cell), string(c.Status), line(c.Name), "–", "–", "–", line(c.Why)}
	if c.Measured != nil {
		row[3] = strings.TrimSpace(num(*c.Measured) + " " + line(c.Unit))
		if c.Kind == gates.KindParity {
			row[3] = num(100**c.Measured) + " %"
		}
	}
	if c.Baseline != nil {
		row[4] = strings.TrimSpace(num(*c.Baseline) + " " + line(c.Unit))
	}
	if c.Percent != nil {
		row[5] = plus(*c.Percent) + " %"
	}
	return row
}

// gateLines are a line a check, the worst first. What passes is counted where it is much.
func gateLines(g *gates.Outcome) []string {
	const many = 20
	var out []string
	passed := 0
	for _, c := range g.Checks {
		if c.Status == gates.Passed {
			passed++
		}
	}
	for _, c := range g.Checks {
		if c.Status != gates.Passed || passed <= many {
			out = append(out, fmt.Sprintf("%s %s: %s: %s", strings.ToUpper(string(c.Status)), line(c.Cell),
				line(gateSubject(&c)), line(c.Why)))
		}
	}
	if passed > many {
		out = append(out, fmt.Sprintf("PASS %d checks; --format json has each", passed))
	}
	return out
}

// gateSubject is what a check is about, where its reason says what is wanted.
func gateSubject(c *gates.Check) string {
	if c.Column != "" {
		return c.Column
	}
	return c.Name
}

// gateSign is a word that is seen at once.
func gateSign(s gates.Status) string {
	switch s {
	case gates.Failed:
		return "FAIL"
	case gates.Inconclusive:
		return "INCONCLUSIVE"
	case gates.Warned:
		return "PASS, with warnings"
	}
	return "PASS"
}
