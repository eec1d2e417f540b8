package section

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/reports/plain"
)

const gateWords = "A limit check fails if the 95% interval of the median lies entirely beyond the limit. With too few launches for an " +
	"interval, the check fails if every launch is beyond the limit. A check against the baseline run fails if the p-value is at most 0.05 " +
	"and the 99% interval of the change lies entirely beyond the tolerance. The null hypothesis of p is that the figure changed by exactly " +
	"the tolerance; Holm's method corrects p for all tests of the gate. A check passes if the 90% interval rules out a regression as " +
	"large as the check must detect. Every other check is inconclusive."

// Gate is the outcome of a run's gate: a line a check in a terminal, elsewhere a table of the checks that did not pass.
func Gate(g *gates.Outcome) Section {
	if g == nil {
		return Section{}
	}
	head := []string{"cell", "status", "what is wanted", "measured", "baseline run", "change", "why"}
	if g.Interleaved {
		head[3], head[4] = plain.Line(g.Run.Name), plain.Line(g.Baseline.Name)
	}
	checks := &plain.Grid{Name: "Checks of the gate that did not pass", Head: head}
	passed := &plain.Grid{Name: "Checks of the gate that passed", Head: head}
	for i := range g.Checks {
		into := checks
		if g.Checks[i].Status == gates.Passed {
			into = passed
		}
		into.Rows = append(into.Rows, gateRow(&g.Checks[i]))
	}
	notes := append(gateSides(g), plain.Lines(g.Notes)...)
	return Section{ID: "gate", Title: "Gate", Sign: gateSign(g.Status), Lines: []string{plain.Line(g.Verdict)},
		Parts: []Section{
			{For: InTerminal, Lines: append(gateLines(g), notes...), Mark: "- "},
			{For: Document | OnPage, Grid: checks.OrNil()},
			{Title: fmt.Sprintf("%d checks pass", len(passed.Rows)), For: Document | OnPage, Folded: true,
				Grid: passed.OrNil()},
			{Title: "What was compared, and how a gate decides", For: Document | OnPage, Folded: true,
				Lines: append(slices.Clone(notes), gateWords), Mark: "- "}}}
}

// gateSides says which runs were compared.
func gateSides(g *gates.Outcome) []string {
	if g.Baseline == nil {
		return nil
	}
	b, name := g.Baseline, plain.Line(g.Baseline.Name)
	if b.Stored != "" {
		name = fmt.Sprintf("%s (%s)", plain.Line(b.Stored), name)
	}
	words := fmt.Sprintf("Baseline run: %s of %s", name, b.Started.Format("2 January 2006, 15:04 MST"))
	if b.SHA256 != "" {
		words += ", sha256 " + plain.Line(b.SHA256[:min(12, len(b.SHA256))])
	}
	if g.Interleaved {
		words += "; launches of both runs alternated"
	}
	if len(g.UnderTest) > 0 {
		words += "; under test: " + plain.Line(strings.Join(g.UnderTest, ", "))
	}
	tested := func(c gates.Check) bool { return c.Kind == gates.KindChange && c.Measured != nil }
	switch {
	case g.Tests == 0 && slices.ContainsFunc(g.Checks, tested):
		return []string{words + "."}
	case g.Tests == 0:
		return []string{words + "; no figure is compared with it."}
	case g.Tests == 1:
		return []string{words + "; one figure is compared with it."}
	}
	return []string{fmt.Sprintf("%s; Holm corrects for %d tests.", words, g.Tests)}
}

func gateRow(c *gates.Check) []string {
	row := []string{plain.Line(c.Cell), string(c.Status) + onlyWarns(c), plain.Line(c.Name), "–", "–", "–",
		plain.Line(c.Why)}
	if c.Measured != nil {
		row[3] = strings.TrimSpace(plain.Num(*c.Measured) + " " + plain.Line(c.Unit))
		if c.Kind == gates.KindParity {
			row[3] = plain.Num(100**c.Measured) + " %"
		}
	}
	if c.Baseline != nil {
		row[4] = strings.TrimSpace(plain.Num(*c.Baseline) + " " + plain.Line(c.Unit))
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
			out = append(out, GateLine(&c))
		}
	}
	if passed > many {
		out = append(out, fmt.Sprintf("PASS %d checks; --format json has each", passed))
	}
	return out
}

// GateLine has a check with its status and reason.
func GateLine(c *gates.Check) string {
	return fmt.Sprintf("%s%s %s: %s: %s", strings.ToUpper(string(c.Status)), onlyWarns(c), plain.Line(c.Cell),
		plain.Line(gateSubject(c)), plain.Line(c.Why))
}

// onlyWarns marks a check that cannot fail the gate, where its status does not say so.
func onlyWarns(c *gates.Check) string {
	if c.Level == string(gates.Warn) && c.Status != gates.Warned {
		return " (can only warn)"
	}
	return ""
}

// gateSubject is what a check is about, where its reason says what is wanted.
func gateSubject(c *gates.Check) string {
	if row := figure.Of(c.Figure); row != nil {
		return plain.Joined(" of ", row.Asked(), c.Part)
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
