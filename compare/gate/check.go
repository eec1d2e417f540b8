package gate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/parity"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/words"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// launches checks that all launches of each cell succeeded.
func (j *judge) launches() {
	level := cmp.Or(j.gate.Failed, gates.Error)
	for _, c := range j.now.Cells {
		l := c.Launches
		check := gates.Check{Name: "all launches succeed", Kind: gates.KindLaunches, Cell: c.Label,
			Launches: l.Counted}
		lost := c.Failures
		// A failed warm-up launch that was repeated does not matter.
		if l.Counted > 0 && l.Counted >= l.Planned {
			lost = slices.DeleteFunc(slices.Clone(lost), func(f compare.Failure) bool { return f.Repetition == 0 })
		}
		switch {
		case c.Refused != "":
			j.add(check, level, gates.Inconclusive, "refused: "+c.Refused)
		case len(lost) > 0:
			f := lost[0]
			first := strings.TrimSpace(cmp.Or(string(f.Class), string(f.Status)) + " " + f.Error)
			l.Failed, l.Interrupted = 0, len(lost)
			for _, f := range lost {
				if f.Status == record.Failed {
					l.Failed, l.Interrupted = l.Failed+1, l.Interrupted-1
				}
			}
			j.add(check, level, gates.Failed, l.Lost()+", the first: "+first)
		case l.Counted == 0:
			j.add(check, level, gates.Failed, "no launch counts")
		case l.Counted < l.Planned && j.now.Runs[c.Run].Status != record.OK:
			j.add(check, level, gates.Failed, fmt.Sprintf("the run ended after %d of %d", l.Counted, l.Planned))
		default:
			j.add(check, level, gates.Passed, words.Count(l.Counted, c.Repeated())+" counted")
		}
	}
}

// within reports whether a check is about a cell.
func within(s gates.Scope, c *compare.Cell) bool {
	for name, values := range s {
		if !has(c, name, values) {
			return false
		}
	}
	return true
}

// has reports whether a cell has one of an axis's values.
func has(c *compare.Cell, name string, values []string) bool {
	x := axis.Named(name)
	return slices.ContainsFunc(values, func(v string) bool { return x.Matches(&c.Spec, v) })
}

// of says what a check is about; empty: all cells.
func of(s gates.Scope) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		var values []string
		for _, v := range s[name] {
			values = append(values, strconv.Quote(v))
		}
		all = append(all, name+" "+strings.Join(values, " or "))
	}
	return strings.Join(all, ", ")
}

// nowhere adds a check whose scope has no cell: a mistyped value must not pass. It lists the values of an axis that no
// cell has as requested, else the engines.
func (j *judge) nowhere(check gates.Check, level gates.Level, s gates.Scope) {
	check.Cell = "no cell"
	wrong := axis.Engine
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !slices.ContainsFunc(j.now.Cells, func(c *compare.Cell) bool { return has(c, name, s[name]) }) {
			wrong = name
			break
		}
	}
	x, values := axis.Named(wrong), []string{}
	for _, c := range j.now.Cells {
		if v := x.Value(&c.Spec); v != "" {
			values = explain.AppendNew(values, v)
		}
	}
	j.add(check, level, gates.Inconclusive, fmt.Sprintf("the run has no cell of %s; its %s are %s",
		cmp.Or(of(s), "any kind"), x.Phrase, cmp.Or(strings.Join(values, ", "), "not set")))
}

// limits checks medians against limits.
func (j *judge) limits() {
	for _, l := range j.gate.Limits {
		level := j.gate.LevelOf(l.Level)
		check := gates.Check{Name: l.Figure.Asked() + " " + bounds(l), Kind: gates.KindLimit,
			Figure: l.Figure.Name, Column: l.Figure.Column.Name,
			Min: l.Min, Max: l.Max}
		found := false
		for _, c := range j.now.Cells {
			if within(l.Scope, c) {
				found = true
				j.limit(check, level, l, c)
			}
		}
		if !found {
			j.nowhere(check, level, l.Scope)
		}
	}
}

func bounds(l gates.Limit) string {
	var words []string
	if l.Min != nil {
		words = append(words, "at least "+num(*l.Min))
	}
	if l.Max != nil {
		words = append(words, "at most "+num(*l.Max))
	}
	return strings.Join(words, " and ")
}

func (j *judge) limit(check gates.Check, level gates.Level, l gates.Limit, c *compare.Cell) {
	f := c.Named(l.Figure.Name)
	check.Cell, check.Unit = c.Label, f.Unit
	if !f.Known() {
		j.add(check, level, gates.Inconclusive, "not measured: "+cmp.Or(f.Absent, "there is no value"))
		return
	}
	check.Measured, check.Interval, check.Launches = f.Median, f.Interval, f.N
	if why := (pair{now: c, base: c}).unjudged(f.Name); why != "" {
		j.add(check, level, gates.Inconclusive, why)
		return
	}
	status := gates.Passed
	for _, b := range []struct {
		limit *float64
		sign  float64 // 1 for a maximum, -1 for a minimum
	}{{l.Max, 1}, {l.Min, -1}} {
		if b.limit != nil {
			status = slices.MinFunc([]gates.Status{status, against(f, *b.limit, b.sign)}, graver)
		}
	}
	why := measured(f) + "; limit " + bounds(l)
	if busy := busy(f); status == gates.Failed && busy != "" {
		status, why = gates.Inconclusive, fmt.Sprintf("%s; the machine was busy: %s", why, busy)
	} else if status == gates.Inconclusive && f.Interval != nil {
		why += "; the median is beyond it, but not significantly"
	} else if f.Interval == nil {
		why += map[gates.Status]string{gates.Passed: ": the median is within it",
			gates.Failed:       ": every launch is beyond it",
			gates.Inconclusive: ": the median is beyond it, but not every launch"}[status]
	}
	if q := c.Quality; q != nil && q.Absent > 0 && status == gates.Passed && l.Figure.Name == figure.Perplexity {
		status, why = gates.Inconclusive, why+fmt.Sprintf("; too low: %d of %d log-probabilities are missing", q.Absent, q.Tokens)
	}
	if n := c.Launches.Opened; n > 0 && f.N > n {
		why += fmt.Sprintf("; its repetitions share %s, so the interval does not cover another launch", words.Count(n,
			"launch"))
	}
	j.add(check, level, status, why)
}

// measured describes a figure's median and interval.
func measured(f evidence.Figure) string {
	median := "median " + unit(f.Center(), f.Unit)
	switch {
	case f.Interval != nil:
		// Its confidence can be higher than that of other intervals.
		return median + explain.CI(&stats.Interval{Lo: f.Interval.Lo, Hi: f.Interval.Hi,
			Confidence: stats.Confidence}, num)
	case f.N == 1:
		return median + " of 1 launch, which has no interval"
	}
	return fmt.Sprintf("%s of %d launches, too few for an interval", median, f.N)
}

// busy says what else used the machine while a time or a rate was measured; empty: nothing, or unknown.
func busy(f evidence.Figure) string {
	for _, w := range f.Warnings {
		if w.Code == explain.BusyMachine.Code {
			return w.Text
		}
	}
	return ""
}

// against checks a figure against one limit. It fails if the interval lies beyond the limit, and is inconclusive if
// only the median does. Without an interval it fails if every launch lies beyond the limit: for a median at the limit,
// the probability of that is 1 in 2 to the power of n launches.
func against(f evidence.Figure, limit, sign float64) gates.Status {
	beyond := func(v float64) bool { return sign*(v-limit) > 0 }
	all := !slices.ContainsFunc(f.Values, func(v evidence.Value) bool { return !beyond(v.Value) })
	if f.Interval != nil {
		all = beyond(f.Interval.Lo) && beyond(f.Interval.Hi)
	}
	switch {
	case all:
		return gates.Failed
	case beyond(f.Center()):
		return gates.Inconclusive
	}
	return gates.Passed
}

// parity checks that outputs are the same.
func (j *judge) parity() {
	p := j.gate.Parity
	if p == nil {
		return
	}
	level := j.gate.LevelOf(p.Level)
	check := gates.Check{Name: j.phrase(p), Kind: gates.KindParity}
	found := false
	if p.With == gates.TheBaseline {
		if j.base == nil {
			j.without(check, level)
			return
		}
		for _, pair := range j.pairs {
			if pair.now == nil || !within(p.Scope, pair.now) {
				continue
			}
			found = true
			if check.Cell = pair.now.Label; pair.base == nil {
				j.fresh(check, level)
				continue
			}
			j.said(check, level, compare.CompareOutputs(pair.base, pair.now))
		}
	} else {
		for _, said := range j.now.Parity {
			a, b := j.now.Cells[said.A], j.now.Cells[said.B]
			if !within(p.Scope, a) && !within(p.Scope, b) {
				continue
			}
			found = true
			check.Cell = a.Label + " and " + b.Label
			j.said(check, level, said)
		}
	}
	if !found {
		check.Cell = "no cell"
		why := "no two cells generated a text of the same model and prompt"
		if of := of(p.Scope); of != "" {
			why += ", of " + of
		}
		j.add(check, level, gates.Inconclusive, why)
	}
}

func (j *judge) phrase(p *gates.Parity) string {
	out := "same output"
	if p.With == gates.TheBaseline {
		out += " as " + j.named
	}
	if p.MinAgreement > 0 {
		out += fmt.Sprintf(", %s%% of tokens", num(100*float64(p.MinAgreement)))
	}
	if p.FirstDiffers > 0 {
		out += fmt.Sprintf(", no difference before token %d", p.FirstDiffers)
	}
	return out
}

func (j *judge) said(check gates.Check, level gates.Level, said parity.Parity) {
	p := j.gate.Parity
	if !said.Compared {
		j.add(check, level, gates.Inconclusive, said.Verdict)
		return
	}
	share, place := agreement(said)
	check.Measured, check.Unit = &share, "share"
	switch {
	case said.ByText && p.FirstDiffers > 0 && !said.Identical:
		j.add(check, level, gates.Inconclusive,
			"there are no token ids, so the first different token is not known: "+said.Verdict)
	case share < float64(p.MinAgreement), p.FirstDiffers > 0 && place > 0 && place < p.FirstDiffers:
		j.add(check, level, gates.Failed, said.Verdict)
	default:
		j.add(check, level, gates.Passed, said.Verdict)
	}
}

// agreement is the share of the shorter output before the first difference, and the position of that, from 1; 0: there
// is none. An output that ends before the other differs at its end. For engines that report no token ids it is the
// share of bytes of the text.
func agreement(p parity.Parity) (share float64, place int) {
	agreed, most := p.Agreed, max(len(p.IDsA), len(p.IDsB))
	if p.ByText {
		agreed, most = p.Shared, max(len(p.TextA), len(p.TextB))
	}
	if p.Identical || most == 0 {
		return 1, 0
	}
	return float64(agreed) / float64(most), agreed + 1
}

// num writes a number with four significant digits, never as a power of ten.
func num(v float64) string {
	if v == 0 {
		return "0" // also of -0
	}
	if math.Abs(v) >= 1e15 || math.IsNaN(v) {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	digits := max(0, 3-int(math.Floor(math.Log10(math.Abs(v)))))
	text := strconv.FormatFloat(v, 'f', min(digits, 9), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func unit(v float64, u string) string { return strings.TrimSpace(num(v) + " " + u) }
