// Package gate holds a run against what it must keep to, and against a baseline: it answers yes or no, where package
// compare tells what was seen. It only judges results, and the same results always get the same answer.
//
// It is safe by default. Against a baseline run a check fails only where Mann and Whitney's test, after Holm's
// correction for all questions of the gate, and the 99% interval of the change agree that the figure is worse than
// its tolerance. It passes only where the 90% interval excludes a regression as large as the gate must detect.
// Everything else is inconclusive: launches that are too few or vary too much, a machine that is another one or was
// busy, a difference that is not under test. A limit is broken where the interval of the median lies beyond it, kept
// where the median keeps to it, and inconclusive in between.
//
// It can't tell why a figure changed. Of runs that were made one after the other it can't tell a program that has
// become slower from a machine that has: runs whose launches take turns can.
package gate

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmparity/compare"
	"llmparity/internal/gates"
)

// Evaluate holds a run against a gate. Each result is one run's; base is nil where there is no baseline run.
func Evaluate(g *gates.Gate, now, base *compare.Result) *compare.Gate {
	return evaluate(g, now, base, "")
}

// Without is Evaluate of a gate that names a baseline run which is not there.
func Without(g *gates.Gate, now *compare.Result, missing string) *compare.Gate {
	return evaluate(g, now, nil, missing)
}

func evaluate(g *gates.Gate, now, base *compare.Result, missing string) *compare.Gate {
	j := &judge{gate: g, now: now, base: base, missing: missing, out: &compare.Gate{Schema: compare.GateSchema,
		Run:    side(now),
		Judged: time.Now().UTC().Truncate(time.Second), Alpha: now.Statistics.Alpha, UnderTest: g.UnderTest,
		Checks: []compare.GateCheck{}, Notes: []string{}}}
	if g.OldName {
		j.note("gate.unknown is called gate.inconclusive now; the old name will go with the next release")
	}
	if base != nil {
		j.out.Baseline = new(side(base))
		j.out.Interleaved = now.Runs[0].Against != "" && now.Runs[0].Against == filepath.Base(base.Runs[0].Dir)
		j.match()
	}
	j.launches()
	j.limits()
	j.changes()
	j.parity()
	switch against := len(g.Changes) > 0 || g.Parity != nil && g.Parity.With == gates.TheBaseline; {
	case base != nil && len(g.Changes) == 0:
		j.note("no figure is held against the baseline run: vs_baseline says how much worse which may be")
	case missing != "" && !against:
		j.without(compare.GateCheck{Name: "baseline run", Kind: compare.GateCell}, gates.Error)
	}
	j.conclude()
	return j.out
}

func side(r *compare.Result) compare.GateSide {
	if len(r.Runs) == 0 {
		return compare.GateSide{}
	}
	return compare.GateSide{Name: r.Runs[0].Name, Dir: r.Runs[0].Dir, Started: r.Runs[0].Started,
		Attempts: r.Attempts()}
}

type judge struct {
	gate      *gates.Gate
	now, base *compare.Result
	missing   string // the name of a baseline run that is not there
	pairs     []pair
	out       *compare.Gate
}

// outcome is what came of a check, before its level says what becomes of that.
type outcome int

const (
	holds outcome = iota
	unsure
	inconclusive
	broken
)

// add keeps a check unless nobody wants to look.
func (j *judge) add(c compare.GateCheck, level gates.Level, came outcome, why string) {
	if level == gates.Off {
		return
	}
	c.Level, c.Why = string(level), why
	switch {
	case came == holds:
		c.Status = compare.GatePassed
	case came == inconclusive:
		c.Status = compare.GateInconclusive
	case came == broken && level == gates.Error:
		c.Status = compare.GateFailed
	default:
		c.Status = compare.GateWarned
	}
	j.out.Checks = append(j.out.Checks, c)
}

func (j *judge) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(j.out.Notes, text) {
		j.out.Notes = append(j.out.Notes, text)
	}
}

// statuses in the order in which they are shown.
func statuses() []compare.GateStatus {
	return []compare.GateStatus{compare.GateFailed, compare.GateInconclusive, compare.GateWarned, compare.GatePassed}
}

// conclude counts, puts the worst first, and says what follows.
func (j *judge) conclude() {
	checks := j.out.Checks
	slices.SortStableFunc(checks, func(a, b compare.GateCheck) int {
		return slices.Index(statuses(), a.Status) - slices.Index(statuses(), b.Status)
	})
	count := map[compare.GateStatus]int{}
	for _, c := range checks {
		count[c.Status]++
	}
	// Of inconclusive checks those decide that could have failed the gate.
	open := slices.DeleteFunc(slices.Clone(checks), func(c compare.GateCheck) bool {
		return c.Status != compare.GateInconclusive || c.Level != string(gates.Error)
	})
	for _, s := range statuses() {
		j.out.Counts = append(j.out.Counts, compare.GateCounted{Status: s, Checks: count[s]})
	}
	j.out.Advice = j.advice(open)
	level := cmp.Or(j.gate.Inconclusive, gates.Error)
	of := func(n int, named string) string {
		return fmt.Sprintf("%d of %s: %s", n, several(len(checks), "check"), named)
	}
	switch {
	case count[compare.GateFailed] > 0:
		j.out.Status, j.out.Verdict = compare.GateFailed, "The gate fails: "+of(count[compare.GateFailed],
			named(checks, compare.GateFailed))+"."
	case len(open) > 0 && level == gates.Error:
		j.out.Status = compare.GateInconclusive
		which := of(len(open), named(open, compare.GateInconclusive))
		j.out.Verdict = "The gate is inconclusive: " + which + "."
		if j.out.Advice != "" {
			j.out.Verdict = fmt.Sprintf("The gate is inconclusive; %s. Inconclusive: %s.", j.out.Advice, which)
		}
	case count[compare.GateWarned] > 0 || count[compare.GateInconclusive] > 0 && level != gates.Off:
		j.out.Status = compare.GateWarned
		j.out.Verdict = fmt.Sprintf("The gate passes with warnings: of %s %d pass, %d warn, %d are inconclusive.",
			several(len(checks), "check"),
			count[compare.GatePassed], count[compare.GateWarned], count[compare.GateInconclusive])
	default:
		j.out.Status = compare.GatePassed
		j.out.Verdict = fmt.Sprintf("The gate passes: %s.", several(len(checks), "check"))
	}
}

// advice is what settles checks that are inconclusive. Launches of both sides that take turns on one machine come
// first: they answer all that is asked of a change. Empty: what the checks say is all that can be done.
func (j *judge) advice(open []compare.GateCheck) string {
	most, against := 0, false
	for _, c := range open {
		most, against = max(most, c.Needed), against || c.Kind == compare.GateChange
	}
	more := ""
	if most > 0 {
		more = fmt.Sprintf(" --repetitions %d", most)
	}
	switch {
	case j.out.Interleaved && most > 0:
		return "to settle it, measure both sides again with" + more
	case j.out.Interleaved || !against:
		return ""
	}
	other := "PLAN2"
	if j.base != nil {
		other = j.base.Runs[0].Dir
	}
	return fmt.Sprintf("to settle it, measure both sides here: llmparity run %s --against %s%s",
		filepath.Join(j.now.Runs[0].Dir, "plan.yaml"), other, more)
}

// named lists a few of the checks that have a status.
func named(checks []compare.GateCheck, status compare.GateStatus) string {
	var out []string
	for _, c := range checks {
		if c.Status == status {
			out = append(out, c.Cell+": "+c.Name)
		}
	}
	if n := len(out); n > 3 {
		out = append(out[:3], fmt.Sprintf("and %d more", n-3))
	}
	return strings.Join(out, "; ")
}

func several(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		what += "e" // launches
	}
	return fmt.Sprintf("%d %ss", n, what)
}
