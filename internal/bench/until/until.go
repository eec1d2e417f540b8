// Package until decides with --until-ci whether a cell needs more repetitions.
package until

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"llmparity/internal/bench/plan"
	"llmparity/internal/figure"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// untilLevel is the confidence level of results with --until-ci.
const untilLevel = 0.95

// Awaited returns the figure that --until-ci waits for, or refuses it.
func Awaited(u plan.UntilCI) (*figure.Row, error) {
	row, err := figure.Find(cmp.Or(u.Figure, plan.DefaultUntil))
	if err == nil && row.Until {
		return row, nil
	}
	figures := figure.Names(figure.Rows(func(r *figure.Row) bool { return r.Until }))
	return nil, fault.New(fault.Usage, "use one of "+strings.Join(figures, ", "),
		"until_ci.figure: %q is not supported", u.Figure)
}

// Rule is group-sequential. A cell's figure is tested ("looked at") after numbers of repetitions fixed in
// advance, and its repetitions end when the median's interval is narrow enough. Stopping at the first good look would
// raise the error rate, so each of L looks uses a confidence level of 1 − 0.05/L. By Bonferroni's inequality all
// intervals together then hold with 95%, whichever look is last. This assumes nothing about the distribution.
type Rule struct {
	figure *figure.Row
	width  float64 // in percent
	at     []int   // counted repetitions at each look, ascending
	values []float64
	absent bool // the figure is not available: the plan's repetitions apply
	least  int
	stop   *record.Stop // nil: not stopped
}

// New returns the rule of a plan; nil without --until-ci.
func New(p plan.Plan) *Rule {
	if p.UntilCI == nil {
		return nil
	}
	row, _ := Awaited(*p.UntilCI) // checked before
	l := &Rule{figure: row, width: float64(p.UntilCI.Width), least: p.Repetitions}
	l.at = schedule(p.Repetitions, p.MostRepetitions())
	return l
}

// schedule returns the repetitions at each look: from the first that allows an interval to the most, growing by half.
// So a cell makes at most half as many repetitions too many, with few looks.
func schedule(least, most int) []int {
	for n := 1; ; n++ { // the first look depends on the number of looks
		first := max(least, firstInterval(confidenceOf(n)))
		at := []int{}
		for next := first; next < most; next += (next + 1) / 2 {
			at = append(at, next)
		}
		at = append(at, max(most, 1))
		if len(at) <= n {
			return at
		}
	}
}

// confidenceOf returns the confidence level of each of n looks.
func confidenceOf(n int) float64 { return 1 - (1-untilLevel)/float64(n) }

// firstInterval returns how many values an interval of the median needs: smallest and largest miss it with probability
// 2^(1-n).
func firstInterval(confidence float64) int { return 1 + int(math.Ceil(-math.Log2(1-confidence))) }

// Of returns the figure of an attempt: the median over its requests, or NaN.
func (l *Rule) Of(requests []*record.Request) float64 {
	return figure.OverRequests(l.figure.Request, requests)
}

// Stopped reports whether the cell is not repeated any more.
func (l *Rule) Stopped() bool { return l != nil && l.stop != nil }

// Keep counts the figure of a successful attempt, which Decide has seen.
func (l *Rule) Keep(v float64, stop *record.Stop) {
	if l.stop = stop; math.IsNaN(v) {
		l.absent = true
	} else {
		l.values = append(l.values, v)
	}
}

// Absent reports whether the figure is not available, so that the plan's repetitions apply.
func (l *Rule) Absent() bool { return l.absent }

// Restore counts the figure of an attempt of a run that is resumed.
func (l *Rule) Restore(requests []*record.Request) {
	if l.stop != nil {
		return
	}
	if v := l.Of(requests); !math.IsNaN(v) {
		l.values = append(l.values, v)
	}
}

// Over is a rule that has stopped before.
func Over() *Rule { return &Rule{stop: &record.Stop{}} }

// Decide returns a stop if the figure of a repetition makes this the last look. The attempt has not ended yet, because
// whether its session is kept depends on it.
func (l *Rule) Decide(v float64, repetition int) *record.Stop {
	if l.absent || math.IsNaN(v) {
		if repetition < l.least {
			return nil
		}
		return &record.Stop{Figure: l.figure.Name, Repetitions: len(l.values), Level: untilLevel, Percent: l.width}
	}
	values := append(slices.Clone(l.values), v)
	look := slices.Index(l.at, len(values))
	if look < 0 {
		if repetition >= l.at[len(l.at)-1] { // some have failed
			return l.reported(values, len(l.at))
		}
		return nil
	}
	s := l.reported(values, look+1)
	if s.Low != nil {
		far := max(*s.High-s.Median, s.Median-*s.Low)
		s.Narrow = far <= math.Abs(s.Median)*l.width/100
	}
	if s.Narrow || look == len(l.at)-1 {
		return s
	}
	return nil
}

// Exhausted returns a stop if no repetition follows one that failed.
func (l *Rule) Exhausted(repetition int) *record.Stop {
	if l == nil || l.Stopped() || repetition < l.at[len(l.at)-1] || len(l.values) == 0 {
		return nil
	}
	return l.reported(l.values, len(l.at))
}

// reported returns what is known at a look.
func (l *Rule) reported(values []float64, look int) *record.Stop {
	s := &record.Stop{Figure: l.figure.Name, Repetitions: len(values), Looks: len(l.at), Look: look, Level: untilLevel,
		Confidence: confidenceOf(len(l.at)), Percent: l.width}
	if len(values) > 0 {
		i := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds),
			s.Confidence)
		s.Median = i.Center
		if !math.IsInf(i.Lo, 0) && !math.IsInf(i.Hi, 0) {
			s.Low, s.High = &i.Lo, &i.Hi
		}
	}
	return s
}
