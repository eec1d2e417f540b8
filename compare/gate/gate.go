// Package gate holds a run against what it must keep to, and against a baseline: it answers yes or no, where package compare tells what was
// seen. It only judges results, and the same results always get the same answer.
//
// It is made to be believed. A limit is broken only where the interval of the median lies wholly beyond it; where there are too few launches
// for an interval, only where every launch does. Against a baseline a check fails only where two things hold: Mann and Whitney's test tells the
// run from the baseline moved by what is let pass, after Holm has corrected for all questions of the gate, and the interval of the change lies
// wholly beyond what is let pass. So of gates over runs that are no worse than is let pass at most one in twenty fails because of chance. What
// can't be judged, because launches are too few or a machine, a browser, a device or a model is another one, is unknown and never passes
// silently; a gate of which nothing could be judged does not hold.
//
// It can't tell why a figure changed, nor see a change that lies within the noise of so few launches: what passes was not shown to be worse,
// which is less than shown to be as good.
package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"llmparity/compare"
	"llmparity/internal/plan"
)

// Evaluate holds a run against a gate. Each result is one run's; base is nil where there is no baseline.
func Evaluate(g *plan.Gate, now, base *compare.Result) *compare.Gate {
	j := &judge{gate: g, now: now, base: base, out: &compare.Gate{Schema: compare.GateSchema, Run: side(now), Judged: time.Now().UTC().Truncate(time.Second),
		Alpha: now.Statistics.Alpha, Checks: []compare.GateCheck{}, Notes: []string{}}}
	if base != nil {
		j.out.Baseline = new(side(base))
		j.match()
	}
	j.launches()
	j.limits()
	j.changes()
	j.parity()
	if base != nil && len(g.Changes) == 0 {
		j.note("no figure is held against the baseline: vs_baseline says how much worse which may be")
	}
	j.conclude()
	return j.out
}

func side(r *compare.Result) compare.GateSide {
	if len(r.Runs) == 0 {
		return compare.GateSide{}
	}
	return compare.GateSide{Name: r.Runs[0].Name, Dir: r.Runs[0].Dir, Started: r.Runs[0].Started, Attempts: r.Attempts()}
}

type judge struct {
	gate      *plan.Gate
	now, base *compare.Result
	pairs     []pair
	out       *compare.Gate
}

// outcome is what came of a check, before its level says what becomes of that.
type outcome int

const (
	holds outcome = iota
	unsure
	broken
	unknown
)

// add keeps a check unless nobody wants to look.
func (j *judge) add(c compare.GateCheck, level plan.GateLevel, came outcome, why string) {
	if level == plan.GateOff {
		return
	}
	c.Level, c.Why = string(level), why
	switch {
	case came == holds:
		c.Status = compare.GatePassed
	case came == unknown:
		c.Status = compare.GateUnknown
	case came == broken && level == plan.GateError:
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

// otherwise is a level that has a default of its own.
func otherwise(l, other plan.GateLevel) plan.GateLevel {
	if l == "" {
		return other
	}
	return l
}

// statuses in the order in which they are shown.
func statuses() []compare.GateStatus {
	return []compare.GateStatus{compare.GateFailed, compare.GateUnknown, compare.GateWarned, compare.GatePassed}
}

// conclude counts, puts the worst first, and says what follows.
func (j *judge) conclude() {
	checks := j.out.Checks
	slices.SortStableFunc(checks, func(a, b compare.GateCheck) int {
		return slices.Index(statuses(), a.Status) - slices.Index(statuses(), b.Status)
	})
	count := map[compare.GateStatus]int{}
	asked, open := 0, 0
	for _, c := range checks {
		count[c.Status]++
		if c.Kind == compare.GateLaunches || c.Kind == compare.GateCell {
			continue
		}
		asked++
		if c.Status == compare.GateUnknown {
			open++
		}
	}
	for _, s := range statuses() {
		j.out.Counts = append(j.out.Counts, compare.GateCounted{Status: s, Checks: count[s]})
	}
	failed, unknowns, warned := count[compare.GateFailed], count[compare.GateUnknown], count[compare.GateWarned]
	blind := asked > 0 && open == asked && j.gate.Unknown != plan.GateOff
	switch {
	case failed > 0:
		j.out.Status = compare.GateFailed
		j.out.Verdict = fmt.Sprintf("The gate does not hold: %d of %s: %s.", failed, several(len(checks), "check"), named(checks, compare.GateFailed))
	case blind:
		j.out.Status = compare.GateFailed
		j.out.Verdict = fmt.Sprintf("The gate does not hold: none of what it asks could be judged (%s); of the first: %s", several(asked, "check"), first(checks, compare.GateUnknown).Why)
	case unknowns > 0 && j.gate.Unknown == plan.GateError:
		j.out.Status = compare.GateFailed
		j.out.Verdict = fmt.Sprintf("The gate does not hold: %d of %s could not be judged: %s.", unknowns, several(len(checks), "check"), named(checks, compare.GateUnknown))
	case warned+unknowns > 0:
		j.out.Status = compare.GateWarned
		j.out.Verdict = fmt.Sprintf("The gate holds, with reservations: of %s %d pass, %d warn, and %d could not be judged.", several(len(checks), "check"),
			count[compare.GatePassed], warned, unknowns)
		if unknowns > 0 && j.gate.Unknown == plan.GateOff && warned == 0 {
			j.out.Status = compare.GatePassed
		}
	default:
		j.out.Status = compare.GatePassed
		j.out.Verdict = fmt.Sprintf("The gate holds: %s, all pass.", several(len(checks), "check"))
	}
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

func first(checks []compare.GateCheck, status compare.GateStatus) compare.GateCheck {
	return checks[slices.IndexFunc(checks, func(c compare.GateCheck) bool { return c.Status == status })]
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
