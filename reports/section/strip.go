package section

import (
	"fmt"
	"slices"
	"strings"

	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/reports/plain"
)

// Strip is a gate in a line: its verdict, the worst figure, what that is held against, and what to do next.
type Strip struct {
	Sign, Worst, Rest string
	Exit, Next        string
	Others            string // how many other checks have which status
	Unlisted          string // the same of those that OtherChecks leaves out
	Check             *gates.Check
}

// NewStrip is nil without a gate.
func NewStrip(g *gates.Outcome) *Strip {
	if g == nil {
		return nil
	}
	s := &Strip{Sign: gateSign(g.Status), Check: g.Worst(), Exit: gateExit(g), Next: gateNext(g)}
	if s.Check == nil {
		s.Rest = plain.Line(g.Verdict)
		return s
	}
	s.Worst, s.Rest = checkShort(s.Check)
	if g.Status == gates.Passed && s.Check.Kind != gates.KindChange && s.Check.Kind != gates.KindLimit {
		s.Worst, s.Rest = "", words.Count(len(g.Checks), "check")+" "+gateVerb(gates.Passed, len(g.Checks))
		return s
	}
	several := func(c gates.Check) bool { return c.Cell != s.Check.Cell }
	if slices.ContainsFunc(g.Checks, several) {
		s.Rest += "; " + plain.Line(s.Check.Cell)
	}
	if c := failedToo(g, s.Check); c != nil {
		also, _ := checkShort(c)
		s.Rest += ", and " + explain.Lower(also)
	}
	listed := map[gates.Status]int{s.Check.Status: 1}
	s.Others = counted(g, listed, "other check")
	for _, c := range others(g, s.Check, MostChecks) {
		listed[c.Status]++
	}
	noun := "other check"
	if len(listed) > 1 || listed[s.Check.Status] > 1 {
		noun = "more check"
	}
	s.Unlisted = counted(g, listed, noun)
	return s
}

// failedToo is the decode speed of the same cell, if it fails beside CPU time; nil otherwise.
func failedToo(g *gates.Outcome, worst *gates.Check) *gates.Check {
	for i := range g.Checks {
		c := &g.Checks[i]
		if worst.Figure == figure.TokenCPU && c.Figure == figure.DecodeTPS && c.Cell == worst.Cell &&
			worst.Status == gates.Failed && c.Status == gates.Failed && c.Percent != nil {
			return c
		}
	}
	return nil
}

// counted says how many checks have which status, without those that are listed.
func counted(g *gates.Outcome, listed map[gates.Status]int, noun string) string {
	var out []string
	for _, c := range g.Counts {
		if n := c.Checks - listed[c.Status]; n > 0 {
			out = append(out, words.Count(n, noun)+" "+gateVerb(c.Status, n))
		}
	}
	return strings.Join(out, ", ")
}

// Line is the strip without what to do next.
func (s *Strip) Line() string {
	return fmt.Sprintf("%s: %s", s.Sign, strings.TrimSpace(s.Worst+" "+s.Rest))
}

// Strong is what a document has in bold.
func (s *Strip) Strong() string { return plain.Joined(": ", s.Sign, s.Worst) }

// After is what follows from it: the exit code, and what to do.
func (s *Strip) After() string { return plain.Joined("; ", s.Exit, s.Next) }

func gateVerb(s gates.Status, n int) string {
	switch s {
	case gates.Inconclusive:
		return explain.Plural(n, "is", "are") + " inconclusive"
	case gates.Failed:
		return explain.Plural(n, "fails", "fail")
	case gates.Warned:
		return explain.Plural(n, "warns", "warn")
	}
	return explain.Plural(n, "passes", "pass")
}

// checkShort is a check's figure, and what it is held against.
func checkShort(c *gates.Check) (figure, rest string) {
	switch {
	case c.Kind == gates.KindChange && c.Percent != nil:
		return fmt.Sprintf("%s %s%%", checkTitle(c), plus(*c.Percent)), checkHeld(c)
	case c.Kind == gates.KindLimit && c.Measured != nil:
		limit := strings.TrimPrefix(plain.Line(c.Name), checkAsked(c)+" ")
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", checkTitle(c), plain.Num(*c.Measured), plain.Line(c.Unit))),
			"(limit: " + limit + ")"
	}
	return plain.Line(c.Name), plain.Line(c.Why)
}

// checkHeld is the tolerance of a change, with the interval that decides it and what that does.
func checkHeld(c *gates.Check) string {
	tolerance := fmt.Sprintf("tolerance %s%%", plusMinus(*c.Allowed))
	i, does := c.DetectInterval, ""
	switch {
	case c.Status == gates.Failed || i == nil:
		if i = c.PercentInterval; c.Status == gates.Failed && c.Kind == gates.KindChange {
			does = " is beyond it"
		}
	case c.Status == gates.Passed && c.Detect != nil:
		does = fmt.Sprintf(" rules out %s%%", plus(*c.Detect))
	}
	if i == nil {
		return tolerance
	}
	interval := fmt.Sprintf("%s%% to %s%%", plus(i.Lo), plus(i.Hi))
	if does == "" {
		return fmt.Sprintf("(%.3g%% CI %s); %s", 100*i.Confidence, interval, tolerance)
	}
	return fmt.Sprintf("(%s; the %.3g%% CI, %s,%s)", tolerance, 100*i.Confidence, interval, does)
}

// checkTitle is a figure's name for people.
func checkTitle(c *gates.Check) string {
	if row := figure.Of(c.Figure); row != nil && c.Part != "" {
		return row.Title + " in the " + plain.Line(c.Part)
	} else if row != nil {
		return row.Title
	}
	return plain.Line(c.Name)
}

func checkAsked(c *gates.Check) string {
	if row := figure.Of(c.Figure); row != nil {
		return row.Asked()
	}
	return ""
}

// gateExit is the exit code of an outcome.
func gateExit(g *gates.Outcome) string {
	code := 0
	switch {
	case g.Status == gates.Inconclusive:
		code = fault.Inconclusive.ExitCode()
	case g.Status == gates.Failed && g.LaunchesAlone():
		code = fault.Run.ExitCode()
	case g.Status == gates.Failed:
		code = fault.Gate.ExitCode()
	}
	return fmt.Sprintf("exit code %d", code)
}

// gateNext is what to do about an outcome that is no pass.
func gateNext(g *gates.Outcome) string {
	failed := func(kind gates.Kind) bool {
		is := func(c gates.Check) bool { return c.Status == gates.Failed && c.Kind == kind }
		return slices.ContainsFunc(g.Checks, is)
	}
	switch {
	case g.Status == gates.Inconclusive:
		return plain.Line(g.Advice)
	case g.Status != gates.Failed:
		return ""
	case failed(gates.KindChange) && g.Baseline != nil && g.Baseline.Stored != "":
		return fmt.Sprintf("if it is intended: llmparity baseline save --replace %s %s",
			plain.Line(g.Baseline.Stored), plain.Line(g.Run.Dir))
	case failed(gates.KindLaunches):
		return fmt.Sprintf("llmparity run --resume %s --retry-failed repeats failed launches", plain.Line(g.Run.Dir))
	}
	return "every check: llmparity gate " + plain.Line(g.Run.Dir)
}

// Sides are the medians of both sides of a change.
func (s *Strip) Sides() string {
	c := s.Check
	if c == nil || c.Measured == nil || c.Baseline == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s against %s %s", plain.Num(*c.Measured), plain.Num(*c.Baseline),
		plain.Line(c.Unit)))
}

// MostChecks is how many checks beside the worst a comment lists.
const MostChecks = 4

// others are the first checks without the worst: those that do not pass, then changes that do.
func others(g *gates.Outcome, worst *gates.Check, most int) (out []*gates.Check) {
	for i := range g.Checks { // the gravest come first
		c := &g.Checks[i]
		told := c.Status != gates.Passed || c.Kind == gates.KindChange
		if c != worst && told && len(out) < most {
			out = append(out, c)
		}
	}
	return out
}

// OtherChecks are the first checks without the worst; nil: there are none.
func OtherChecks(g *gates.Outcome, worst *gates.Check, most int) *plain.Grid {
	const longest = 300 // letters of a reason
	out := &plain.Grid{Head: []string{"check", "status", "figure", "held against"}}
	for _, c := range others(g, worst, most) {
		figure, rest := checkShort(c)
		out.Rows = append(out.Rows, []string{plain.Line(c.Cell), string(c.Status) + onlyWarns(c), figure,
			plain.Shorten(rest, longest)})
	}
	return out.OrNil()
}
