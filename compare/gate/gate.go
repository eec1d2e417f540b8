// Package gate checks a run against limits and against a baseline run. It passes or fails a result of package compare,
// and the same results always get the same verdict.
//
// It is safe by default. Against a baseline run a check fails only where Mann and Whitney's test, after Holm's
// correction for all checks of the gate, and the 99% interval of the change agree that the figure is worse than its
// tolerance. It passes only where the 90% interval excludes a regression as large as the gate must detect.
// Everything else is inconclusive: too few launches, launches that vary too much, another or a busy machine, a
// difference that is not under test. A limit fails if the interval of the median lies beyond it, passes if the median
// is within it, and is inconclusive in between.
//
// It cannot say why a figure changed. If runs were made one after the other, a slower program looks like a slower
// machine; interleaved launches distinguish them.
package gate

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/internal/baseline"
	"llmparity/internal/gates"
	"llmparity/internal/kit/words"
)

// Evaluate judges a run by a gate. Each result is that of one run; base is nil without a baseline run.
func Evaluate(g *gates.Gate, now, base *compare.Result) *gates.Outcome {
	return evaluate(g, now, base, Against{})
}

// evaluate is Evaluate for a gate whose baseline run may be missing, and whose sides may have names.
func evaluate(g *gates.Gate, now, base *compare.Result, of Against) *gates.Outcome {
	j := &judge{gate: g, now: now, base: base, named: "the baseline run", out: &gates.Outcome{Schema: gates.Schema,
		Run:    side(now),
		Judged: time.Now().UTC().Truncate(time.Second), Alpha: now.Statistics.Alpha, UnderTest: g.UnderTest,
		Checks: []gates.Check{}, Notes: []string{}}}
	if base == nil {
		j.missing = of.Name
	}
	if base != nil {
		j.out.Baseline = new(side(base))
		if len(of.Sides) == 2 {
			j.out.Baseline.Name, j.out.Run.Name, j.named = of.Sides[0], of.Sides[1], of.Sides[0]
		}
		j.out.Interleaved = now.Runs[0].Against != "" && now.Runs[0].Against == filepath.Base(base.Runs[0].Dir)
		j.match()
	}
	j.launches()
	j.limits()
	j.changes()
	j.parity()
	j.scores()
	j.cpuAlone()
	switch {
	case g.Default:
		j.note("default tolerances: %s; set others with vs_baseline", g.Tolerances())
	case base != nil && len(g.Changes) == 0:
		j.note("no figure is compared with the baseline run; set tolerances with vs_baseline")
	}
	j.conclude()
	return j.out
}

func side(r *compare.Result) gates.Side {
	return gates.Side{Name: r.Runs[0].Name, Dir: r.Runs[0].Dir, Started: r.Runs[0].Started,
		Attempts: r.Attempts(0)}
}

type judge struct {
	gate      *gates.Gate
	now, base *compare.Result
	missing   string // name of a baseline run that does not exist
	named     string // what sentences call the baseline run
	pairs     []pair
	needed    int // launches a side that would settle all inconclusive checks that matter; 0: unknown
	out       *gates.Outcome
}

// add adds a check, unless its level is off. A failure at the level warn is a warning.
func (j *judge) add(c gates.Check, level gates.Level, status gates.Status, why string) {
	if level == gates.Off {
		return
	}
	if status == gates.Failed && level == gates.Warn {
		status = gates.Warned
	}
	c.Level, c.Status, c.Why = string(level), status, why
	j.out.Checks = append(j.out.Checks, c)
}

func (j *judge) note(format string, args ...any) {
	j.out.Notes = explain.AppendNew(j.out.Notes, fmt.Sprintf(format, args...))
}

// statuses is the order in which statuses are shown: the gravest first.
var statuses = []gates.Status{gates.Failed, gates.Inconclusive, gates.Warned, gates.Passed}

// graver sorts the graver status before the other.
func graver(a, b gates.Status) int {
	return slices.Index(statuses, a) - slices.Index(statuses, b)
}

// conclude counts the checks, sorts the worst first, and writes the verdict.
func (j *judge) conclude() {
	checks := j.out.Checks
	slices.SortStableFunc(checks, func(a, b gates.Check) int { return graver(a.Status, b.Status) })
	count := map[gates.Status]int{}
	for _, c := range checks {
		count[c.Status]++
	}
	for _, s := range statuses {
		j.out.Counts = append(j.out.Counts, gates.Counted{Status: s, Checks: count[s]})
	}
	failed := having(checks, gates.Failed)
	// Only inconclusive checks that could have failed the gate make it inconclusive.
	open := slices.DeleteFunc(having(checks, gates.Inconclusive),
		func(c gates.Check) bool { return c.Level != string(gates.Error) })
	j.out.Advice = j.advice(open)
	level, all := cmp.Or(j.gate.Inconclusive, gates.Error), words.Count(len(checks), "check")
	mild, rest := 0, ""
	for _, c := range checks {
		if c.Level != string(gates.Error) {
			mild++
		}
	}
	if mild > 0 {
		rest = fmt.Sprintf(" %s can only warn.", words.Count(mild, "more check"))
	}
	decide := words.Count(len(checks)-mild, "check")
	of := func(some []gates.Check) string { return fmt.Sprintf("%d of %s: %s", len(some), decide, named(some)) }
	switch {
	case len(failed) > 0:
		j.out.Status, j.out.Verdict = gates.Failed, "The gate fails: "+of(failed)+"."+rest
	case len(open) > 0 && level == gates.Error:
		j.out.Status, j.out.Verdict = gates.Inconclusive, "The gate is inconclusive: "+of(open)+"."+rest
		if j.out.Advice != "" {
			j.out.Verdict += fmt.Sprintf(" %s%s.", strings.ToUpper(j.out.Advice[:1]), j.out.Advice[1:])
		}
	case count[gates.Warned] > 0 || count[gates.Inconclusive] > 0 && level != gates.Off:
		words := fmt.Sprintf("%d of %s pass", count[gates.Passed], all)
		if n := count[gates.Warned]; n > 0 {
			words += fmt.Sprintf(", %d %s", n, explain.Plural(n, "warns", "warn"))
		}
		if n := count[gates.Inconclusive]; n > 0 {
			words += fmt.Sprintf(", %d %s inconclusive", n, explain.Plural(n, "is", "are"))
		}
		j.out.Status, j.out.Verdict = gates.Warned, "The gate passes with warnings: "+words+"."
	default:
		words := ": " + decide + "." + rest
		if n := count[gates.Inconclusive]; n > 0 {
			words = fmt.Sprintf(": %d of %s pass, %d inconclusive and ignored.", count[gates.Passed], all, n)
		} else if !slices.ContainsFunc(checks, func(c gates.Check) bool { return c.Kind != gates.KindLaunches }) {
			words = ", but nothing except launches was checked."
		}
		j.out.Status, j.out.Verdict = gates.Passed, "The gate passes"+words
	}
}

func having(checks []gates.Check, status gates.Status) []gates.Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c gates.Check) bool { return c.Status != status })
}

// advice is what would settle inconclusive checks. Interleaved launches on one machine come first: they decide every
// check of a change. Empty: the checks themselves say what to do.
func (j *judge) advice(open []gates.Check) string {
	against := slices.ContainsFunc(open, func(c gates.Check) bool { return c.Kind == gates.KindChange })
	more, end := "", ""
	if j.needed > 0 {
		more, end = fmt.Sprintf(" --repetitions %d", j.needed), "to settle it, "
	}
	switch {
	case j.out.Interleaved && more != "":
		return "to settle it, measure both sides again with" + more
	case j.out.Interleaved || !against:
		return ""
	case j.base == nil:
		name := j.missing
		if baseline.CheckName(name) != nil { // no name, or a folder
			name = "NAME"
		}
		return fmt.Sprintf("first save a baseline run: llmparity baseline save %s DIR", name)
	}
	return fmt.Sprintf("%smeasure both sides here: llmparity run %s --against %s%s", end,
		filepath.Join(j.now.Runs[0].Dir, "plan.yaml"), j.base.Runs[0].Dir, more)
}

// named lists a few checks.
func named(checks []gates.Check) string {
	var out []string
	for _, c := range checks {
		out = append(out, c.Cell+": "+c.Name)
	}
	if n := len(out); n > 3 {
		out = append(out[:3], fmt.Sprintf("and %d more", n-3))
	}
	return strings.Join(out, "; ")
}
