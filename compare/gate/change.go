package gate

import (
	"fmt"
	"math"
	"strings"

	"llmparity/compare"
	"llmparity/internal/plan"
)

const noBaseline = "there is no baseline to hold it against; `llmparity baseline save NAME DIR` keeps a run as one"

// question is a change that is asked about, of a cell that can be judged.
type question struct {
	check  compare.GateCheck
	level  plan.GateLevel
	change plan.GateChange
	asked  *compare.Against
	base   *compare.Cell
	now    *compare.Cell
}

// changes holds figures against the baseline's. All that can be judged are one family.
func (j *judge) changes() {
	var all []question
	for _, c := range j.gate.Changes {
		level := j.gate.LevelOf(c.Level)
		check := compare.GateCheck{Name: fmt.Sprintf("%s %s against the baseline", c.Figure.Column, allowed(c)), Kind: compare.GateChange,
			Figure: c.Figure.Name, Column: c.Figure.Column, Allowed: new(math.Round(c.Change*1e8) / 1e6)}
		if j.base == nil {
			check.Cell = "all"
			j.add(check, level, unknown, noBaseline)
			continue
		}
		if level == plan.GateOff {
			continue // what nobody looks at is no question
		}
		found, judged := false, false
		var fresh []string
		for _, p := range j.pairs {
			if p.now == nil || !within(c.GateScope, p.now) {
				continue
			}
			found = true
			check.Cell = p.now.Label
			if p.base == nil {
				fresh = append(fresh, p.now.Label) // it is new, which is noted
				continue
			}
			judged = true
			if q, ok := j.ask(check, level, c, p); ok {
				all = append(all, q)
			}
		}
		switch {
		case !found:
			j.nowhere(check, level, c.GateScope)
		case !judged: // a note alone would let pass what was never looked at
			for _, check.Cell = range fresh {
				j.add(check, level, unknown, "the cell is new: the baseline has none to hold it against")
			}
		}
	}
	questions := make([]*compare.Against, len(all))
	for i, q := range all {
		questions[i] = q.asked
	}
	j.out.Tests = compare.Correct(questions)
	for _, q := range all {
		came, why := q.answer(j.out.Tests)
		j.add(q.check, q.level, came, why)
	}
}

// allowed says how far a figure may go in the worse direction.
func allowed(c plan.GateChange) string {
	percent := num(math.Abs(math.Round(c.Change*1e8) / 1e6))
	switch {
	case c.Change == 0:
		return "no worse"
	case c.Figure.Better == plan.Higher:
		return "at most " + percent + " % lower"
	}
	return "at most " + percent + " % higher"
}

// ask sets the two sides against each other; false where that can't be done, which is the check's answer.
func (j *judge) ask(check compare.GateCheck, level plan.GateLevel, c plan.GateChange, p pair) (question, bool) {
	if p.why != "" {
		j.add(check, level, unknown, p.why)
		return question{}, false
	}
	asked, why := compare.SetAgainst(p.base, p.now, c.Figure.Name, c.Change)
	if why != "" {
		j.add(check, level, unknown, why)
		return question{}, false
	}
	check.Unit, check.Measured, check.Interval, check.Launches = asked.Unit, new(asked.Right.Median), asked.Right.Interval, asked.Right.N
	check.Baseline, check.BaseLaunches = new(asked.Left.Median), asked.Left.N
	check.Percent, check.PercentInterval = asked.Percent, asked.PercentInterval
	return question{check, level, c, &asked, p.base, p.now}, true
}

// answer judges one question when all have been corrected for each other.
func (q *question) answer(tests int) (outcome, string) {
	a := q.asked
	q.check.P, q.check.PHolm = new(a.Raw), new(a.P)
	sides := fmt.Sprintf("%s, was %s", unit(a.Right.Median, a.Unit), num(a.Left.Median))
	n := fmt.Sprintf("n = %d and %d", a.Left.N, a.Right.N)
	if why := q.few(tests, n); why != "" {
		return unknown, sides + why
	}
	if a.PercentInterval == nil || a.Percent == nil {
		return unknown, sides + "; no share can be told of it: " + firstOf(a.IntervalNote, "the baseline is not above 0")
	}
	sides += fmt.Sprintf(": %s %% (interval %s to %s, p = %s, %s)", plus(*a.Percent), plus(a.PercentInterval.Lo), plus(a.PercentInterval.Hi), num(a.P), n)
	worse, bound := 1.0, 100*q.change.Change
	near, far := a.PercentInterval.Lo, a.PercentInterval.Hi
	if q.change.Figure.Better == plan.Higher {
		worse, near, far = -1, far, near
	}
	beyond := func(percent float64) bool { return worse*(percent-bound) > 1e-9 }
	if a.Note != "" {
		sides += "; " + a.Note
	}
	switch {
	case a.Significant && beyond(near):
		if why := q.outside(); why != "" {
			return unknown, sides + ": worse than is let pass, but " + why
		}
		return broken, sides + ": worse than is let pass"
	case a.Changed && beyond(*a.Percent):
		return unsure, sides + ": it is worse, and whether by more than is let pass can't be told from chance"
	case a.Changed && worse**a.Percent > 0:
		return holds, sides + ": it is worse, within what is let pass"
	case a.Changed:
		return holds, sides + ": it is better"
	case beyond(far):
		return holds, sides + ", which can't be told from chance, nor can it be excluded that it is worse than is let pass"
	}
	return holds, sides + ", which can't be told from chance"
}

// outside says what else than the engine has made a figure worse, or may have: others who were busy on the machine or beside it, and others who
// map the same files, of which PSS counts less while they run.
func (q *question) outside() string {
	name := q.change.Figure.Name
	for _, side := range []struct {
		c    *compare.Cell
		when string
	}{{q.base, "the baseline"}, {q.now, "the run"}} {
		for _, w := range side.c.Named(name).Warnings {
			if w.Code == compare.BusyMachine {
				return fmt.Sprintf("others were busy on the machine of %s: %s", side.when, w.Text)
			}
		}
	}
	if f := q.now.Named(name); f.TimeOrRate() {
		if why := compare.MoreStolen(q.base, q.now); why != "" {
			return why
		}
	}
	was, is := q.base.Named(compare.PeakRSS), q.now.Named(compare.PeakRSS)
	if !strings.HasSuffix(name, "_pss") && name != compare.Increase && name != compare.PeakUSS || !was.Known() || !is.Known() {
		return ""
	}
	if grown := q.asked.Right.Median - q.asked.Left.Median; is.Center()-was.Center() < grown/2 {
		return fmt.Sprintf("the sum of RSS did not grow with it (%s MiB, was %s): programs outside that map the same files move PSS and USS", num(is.Center()), num(was.Center()))
	}
	return ""
}

// few says so where no launches whatever could have answered the question.
func (q *question) few(tests int, n string) string {
	a := q.asked
	if a.Call != compare.TooFewToSay && a.IntervalNote != compare.TooFewRuns {
		return ""
	}
	why := fmt.Sprintf("; %s are too few runs to tell a change from chance: it takes %d launches a side", n, compare.Suffice(tests))
	if q.base.Spec.Reused || q.base.Spec.Isolation == "server" {
		why += ", and repetitions that share one count once"
	}
	return why
}

func plus(v float64) string {
	if v > 0 {
		return "+" + num(v)
	}
	return num(v)
}
