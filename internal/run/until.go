package run

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"llmparity/internal/fault"
	"llmparity/internal/figure"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// untilLevel is that of the intervals of cells that are repeated until they are narrow, wherever they stop.
const untilLevel = 0.95

// awaited is the row of the figure that is waited for; the error refuses one that can't be.
func awaited(u plan.UntilCI) (*figure.Row, error) {
	row, err := figure.Find(cmp.Or(u.Figure, plan.DefaultUntil))
	if err == nil && row.Until {
		return row, nil
	}
	figures := figure.Names(figure.Rows(func(r *figure.Row) bool { return r.Until }))
	return nil, fault.New(fault.Usage, "use one of "+strings.Join(figures, ", "),
		"until_ci.figure: %q can't be waited for", u.Figure)
}

// looks is a group-sequential rule: a cell's figure is looked at after numbers of repetitions that are fixed before the
// first, and its repetitions end at the first look at which the median's interval is narrow enough. Whoever looks often
// and stops when he likes what he sees errs oftener than his interval says; so each of L looks has an interval of 1 −
// 0.05/L, and by Bonferroni's inequality all of them hold together in 95 of 100 cells, that of the last look, wherever
// it is, among them. That assumes nothing of the distribution.
type looks struct {
	figure *figure.Row
	width  float64 // in percent
	at     []int   // repetitions that count, ascending
	values []float64
	each   float64 // confidence of each look's interval
	given  bool    // the figure can't be had: repetitions are as many as the plan says
	least  int
	stop   *record.Stop // nil: it goes on
	trial  *float64     // of an attempt that has not ended yet
}

// newLooks fixes the looks of a plan; nil where it has no such rule.
func newLooks(p plan.Plan) *looks {
	if p.UntilCI == nil {
		return nil
	}
	row, _ := awaited(*p.UntilCI) // a plan that is refused is not carried out
	l := &looks{figure: row, width: float64(p.UntilCI.Width), least: p.Repetitions}
	l.at = schedule(p.Repetitions, p.MostRepetitions())
	l.each = confidenceOf(len(l.at))
	return l
}

// schedule gives the looks from the first number of repetitions for which there is an interval to the most, each half
// as many again as the one before: whoever needs many repetitions makes at most half as many too many, and pays for few
// looks.
func schedule(least, most int) []int {
	for n := 1; ; n++ { // as many looks as the first one, which depends on their number, leaves room for
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

// confidenceOf is that of each of n looks' intervals.
func confidenceOf(n int) float64 { return 1 - (1-untilLevel)/float64(n) }

// firstInterval is how many values a median's interval of a confidence takes: the smallest and the largest of them miss
// it on one side with a chance of 2^(1-n) together.
func firstInterval(confidence float64) int { return 1 + int(math.Ceil(-math.Log2(1-confidence))) }

// of is the figure of an attempt: the median over its requests; NaN where it can't be had.
func (l *looks) of(requests []*record.Request) float64 {
	return figure.OverRequests(l.figure.Request, requests)
}

func (l *looks) stopped() bool { return l != nil && l.stop != nil }

// see takes an attempt's figure, before the attempt has ended: whether its session is kept depends on it.
func (l *looks) see(v float64, repetition int) {
	if l == nil {
		return
	}
	l.trial = &v
	l.stop = l.decide(repetition)
}

// keep counts the figure of an attempt that ended well, and says what stopped the cell, if it is stopped by that.
func (l *looks) keep(v float64, repetition int) (record.Stop, bool) {
	if l == nil {
		return record.Stop{}, false
	}
	l.see(v, repetition)
	l.trial = nil
	if !math.IsNaN(v) {
		l.values = append(l.values, v)
	} else {
		l.given = true
	}
	if l.stop == nil {
		return record.Stop{}, false
	}
	return *l.stop, true
}

// lose forgets the figure of an attempt that failed.
func (l *looks) lose() {
	if l != nil {
		l.trial, l.stop = nil, nil
	}
}

// decide looks, where it is time to.
func (l *looks) decide(repetition int) *record.Stop {
	values := l.values
	if l.trial != nil && !math.IsNaN(*l.trial) {
		values = append(slices.Clone(values), *l.trial)
	}
	if l.given || l.trial != nil && math.IsNaN(*l.trial) {
		if repetition >= l.least {
			return &record.Stop{Figure: l.figure.Name, Repetitions: len(values), Level: untilLevel,
				Percent: l.width}
		}
		return nil
	}
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

// reported is what is known at a look.
func (l *looks) reported(values []float64, look int) *record.Stop {
	s := &record.Stop{Figure: l.figure.Name, Repetitions: len(values), Looks: len(l.at), Look: look, Level: untilLevel,
		Confidence: l.each, Percent: l.width}
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

// hopeless tells that nothing could be waited for: the figure can't be had of what the cell generates.
func (l *looks) hopeless() bool { return l.stopped() && l.given }
