package gate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/kit/words"
	"llmparity/internal/stats"
)

// question is the check of a change in a cell that can be judged.
type question struct {
	pair
	check    gates.Check
	level    gates.Level
	change   gates.Change
	compared *compare.Against
	beside   bool   // as asked has it
	offset   bool   // of one kind of processes: the others compute less
	named    string // the baseline run in a sentence
	out      *gates.Outcome
}

// called is the baseline run before a figure of it.
func (q *question) called() string { return called(q.named) }

func called(name string) string { return strings.TrimPrefix(name, "the ") }

// changes compares figures with the baseline run's. All that can be judged are one family of tests.
func (j *judge) changes() {
	var all []*question
	var compared []*compare.Against
	for _, a := range j.asked() {
		c, level := a.Change, j.gate.LevelOf(a.Level)
		check := gates.Check{Name: fmt.Sprintf("%s %s than %s", c.Figure.Asked(), allowed(c), j.named),
			Kind:   gates.KindChange,
			Figure: c.Figure.Name, Column: c.Figure.Column.Name, Allowed: new(percent(c.Change))}
		if !c.Figure.Optional {
			check.Detect = new(percent(j.gate.DetectOf(c)))
		}
		if j.base == nil {
			j.without(check, level)
			continue
		}
		if level == gates.Off {
			continue // it must not count as a test of the family
		}
		found := false
		for _, p := range j.pairs {
			if p.now == nil || !within(c.Scope, p.now) {
				continue
			}
			found = true
			check.Cell = p.now.Label
			if a.beside {
				for _, q := range j.besideSpeed(check, level, c, p) {
					all, compared = append(all, q), append(compared, q.compared)
				}
			} else if p.base == nil {
				j.fresh(check, level)
			} else if c.Figure.Optional {
				j.quality(check, level, c, p)
			} else if q := j.compareChange(check, level, c, p); q != nil {
				all, compared = append(all, q), append(compared, q.compared)
			}
		}
		if !found && !a.beside {
			j.nowhere(check, level, c.Scope)
		}
	}
	j.out.Tests = compare.Correct(compared)
	load := ""
	status, whys := make([]gates.Status, len(all)), make([]string, len(all))
	for i, q := range all {
		status[i], whys[i] = q.judge()
		if status[i], whys[i] = traded(q, status[i], whys[i], all); q.level == gates.Error && !q.beside {
			j.needed = max(j.needed, q.check.Needed)
		}
	}
	for i, q := range all {
		if q.beside && status[i] == gates.Inconclusive || q.check.Part != "" && !q.tells(status[i], all, status) {
			continue
		}
		if n := q.check.Needed; n > 0 && j.needed > 0 && n > j.needed { // it cannot fail the gate
			whys[i] += "; more launches would settle it"
		} else if n > 0 {
			whys[i] += fmt.Sprintf("; %d launches a side would settle it", cmp.Or(j.needed, n))
		}
		j.add(q.check, q.level, status[i], whys[i])
		name := q.change.Figure.Name
		if words := cmp.Or(busy(q.now.Named(name)), busy(q.base.Named(name))); words != "" && load == "" &&
			j.out.Interleaved {
			load = words
			j.note("both sides ran on a busy machine: %s", load)
		}
	}
}

// without adds a check against a baseline run that does not exist.
func (j *judge) without(check gates.Check, level gates.Level) {
	check.Cell = "all"
	what := "no baseline run"
	if j.missing != "" {
		what = fmt.Sprintf("no baseline run %q", j.missing)
	}
	if j.gate.NoBaseline == gates.BaselineOptional {
		j.note("%s: checks against it are left out", what)
		return
	}
	j.add(check, level, gates.Inconclusive,
		what+": `llmparity baseline save NAME DIR` saves one, --no-baseline ok passes without")
}

// fresh adds a check of a cell that the baseline run lacks.
func (j *judge) fresh(check gates.Check, level gates.Level) {
	known := slices.ContainsFunc(j.pairs, func(p pair) bool { return p.base != nil && p.now != nil })
	if j.gate.NoBaseline == gates.BaselineOptional && known {
		j.note("%s is new: %s has no such cell, so its figures are not compared", check.Cell, j.named)
		return
	}
	why := fmt.Sprintf("new: %s has no such cell", j.named)
	if known {
		why += " (--no-baseline ok passes without)"
	}
	j.add(check, level, gates.Inconclusive, why)
}

// percent is a share in percent, without rounding errors.
func percent(share float64) float64 { return math.Round(share*1e8) / 1e6 }

// allowed says how far a figure may go in the worse direction.
func allowed(c gates.Change) string {
	size := num(math.Abs(percent(c.Change)))
	switch {
	case c.Change == 0:
		return "no worse"
	case c.Figure.Better == figure.Higher:
		return "at most " + size + "% lower"
	}
	return "at most " + size + "% higher"
}

// compareChange compares the two sides; nil: they cannot be compared, and the check is inconclusive.
func (j *judge) compareChange(check gates.Check, level gates.Level, c gates.Change, p pair) *question {
	compared, why := compare.Against{}, cmp.Or(p.why, p.unjudged(c.Figure.Name))
	if why == "" {
		compared, why = compare.CompareFigure(p.base, p.now, c.Figure.Name, c.Change, j.out.Interleaved)
	}
	if why != "" {
		j.add(check, level, gates.Inconclusive, why)
		return nil
	}
	return j.question(check, level, c, p, compared)
}

// besideSpeed is compareChange for what nobody asked for: what cannot be compared is left out.
func (j *judge) besideSpeed(check gates.Check, level gates.Level, c gates.Change, p pair) (out []*question) {
	if p.base == nil || p.why != "" || p.unjudged(c.Figure.Name) != "" {
		return nil
	}
	compared, why := compare.CompareFigure(p.base, p.now, c.Figure.Name, c.Change, j.out.Interleaved)
	if why != "" {
		return nil
	}
	out = append(out, j.question(check, level, c, p, compared))
	if j.out.Interleaved {
		out = append(out, j.parts(compared, check, level, c, p)...)
	}
	for _, q := range out {
		q.beside = true
	}
	return out
}

// question is the check of a change that was computed.
func (j *judge) question(check gates.Check, level gates.Level, c gates.Change, p pair,
	compared compare.Against) *question {
	check.Unit, check.Measured, check.Interval, check.Launches = compared.Unit, new(compared.Right.Median),
		compared.Right.Interval, compared.Right.N
	check.Baseline, check.BaseLaunches = new(compared.Left.Median), compared.Left.N
	check.Percent, check.PercentInterval = compared.Percent, compared.PercentInterval
	check.DetectInterval = compared.Usual
	return &question{pair: p, check: check, level: level, change: c, compared: &compared, named: j.named,
		out: j.out}
}

// worse is the sign of changes for the worse.
func (q *question) worse() float64 { return worse(q.change.Figure) }

func worse(f *figure.Row) float64 {
	if f.Better == figure.Higher {
		return -1
	}
	return 1
}

// ends are the better and the worse end of an interval.
func (q *question) ends(i *stats.Interval) (near, far float64) {
	if q.worse() < 0 {
		return i.Hi, i.Lo
	}
	return i.Lo, i.Hi
}

// beyond reports whether one change is worse than another.
func (q *question) beyond(change, bound float64) bool { return q.worse()*(change-bound) > 1e-9 }

// judge judges one question, after Holm's correction.
func (q *question) judge() (gates.Status, string) {
	a := q.compared
	q.check.P, q.check.PCorrected = new(a.Raw), new(a.P)
	sides := fmt.Sprintf("%s, %s %s", unit(a.Right.Median, a.Unit), q.called(), num(a.Left.Median))
	if a.Call == stats.TooFewToSay || a.Sides.Few {
		return q.few(sides)
	}
	if a.PercentInterval == nil || a.Usual == nil || a.Percent == nil {
		why := cmp.Or(a.IntervalNote, q.named+"'s figure is not above 0")
		return gates.Inconclusive, sides + "; no percentage: " + why
	}
	status, rest := q.decide()
	shown, detect := a.Usual, ", detect "+signed(*q.check.Detect)
	if q.significant() {
		shown, detect = a.PercentInterval, ""
	}
	q.check.Found = new(math.Round(q.found()*1e4) / 1e4)
	of := ""
	if q.check.Part != "" {
		of = " of the CPU time of all processes"
	}
	sides += fmt.Sprintf(" (%s%s, %.0f%% CI %s to %s); tolerance %s%s", signed(*a.Percent), of, 100*shown.Confidence,
		signed(shown.Lo), signed(shown.Hi), signed(*q.check.Allowed), detect)
	if a.Note != "" {
		rest += "; " + a.Note
	}
	return status, sides + rest
}

// significant reports whether a figure is significantly worse than its tolerance.
func (q *question) significant() bool {
	near, _ := q.ends(q.compared.PercentInterval)
	return q.compared.Significant && q.beyond(near, *q.check.Allowed)
}

// decide judges a question that has intervals, and says why.
func (q *question) decide() (gates.Status, string) {
	a := q.compared
	switch ruled := q.ruledOut(); {
	case q.significant():
		if why := q.outside(); why != "" {
			return gates.Inconclusive, "; significantly worse, but " + why
		}
		return gates.Failed, ""
	case ruled:
		if why := q.hidden(); why != "" {
			seen := "no regression seen"
			if a.Changed && !q.beyond(*a.Percent, 0) {
				seen = "better"
			}
			return gates.Inconclusive, "; " + seen + ", but " + why
		}
	default:
		words := ""
		if q.beyond(0, *a.Percent) {
			words = "; better, but too noisy to rule out a regression"
		}
		if near, _ := q.ends(a.Usual); q.beyond(near, *q.check.Allowed) {
			words = fmt.Sprintf("; worse than the tolerance, but not by the %.0f%% interval that a failure takes (%s to %s)",
				100*a.PercentInterval.Confidence, signed(a.PercentInterval.Lo), signed(a.PercentInterval.Hi))
		}
		if why := cmp.Or(q.outside(), q.hidden()); why != "" { // no number of launches would settle it
			return gates.Inconclusive, words + "; " + why + "; close other programs and measure again"
		}
		if q.check.Needed = q.needed(); q.check.Needed > 0 {
			return gates.Inconclusive, words
		}
		return gates.Inconclusive, fmt.Sprintf("%s; more launches would not settle it in practice (over %d a side)", words,
			mostNeeded)
	}
	switch {
	case a.Changed && q.beyond(*a.Percent, *q.check.Allowed):
		return gates.Warned, fmt.Sprintf("; significantly worse than %s, but not significantly worse than the tolerance",
			q.named)
	case a.Changed && q.beyond(*a.Percent, 0):
		return gates.Passed, "; worse, within the tolerance"
	case a.Changed:
		return gates.Passed, "; better"
	}
	return gates.Passed, ""
}

// ruledOut reports whether a regression as large as the gate must detect is excluded. Launches that vary too much to
// find one could exclude it by chance: then any regression at all must be excluded.
func (q *question) ruledOut() bool {
	_, far := q.ends(q.compared.Usual)
	if q.beyond(far, *q.check.Detect) || far == *q.check.Detect {
		return false
	}
	log := func(change float64) float64 { return math.Log1p(change / 100) }
	width := log(q.compared.Usual.Hi) - log(q.compared.Usual.Lo)
	return width < 2*math.Abs(log(*q.check.Detect)) || !q.beyond(far, 0)
}

// deviation is the standard error of the logarithm of the change, from the 99% interval of a normal distribution, whose
// half-width is 2.576 standard errors. Below, 1.645 stands for 90% and 1.282 for a power of 0.9.
func (q *question) deviation() float64 {
	near, far := q.ends(q.compared.PercentInterval)
	return math.Abs(math.Log1p(far/100)-math.Log1p(near/100)) / 2 / 2.576
}

// found is the smallest change, in percent, that is found to be worse than the tolerance with a power of 0.9.
func (q *question) found() float64 {
	return 100 * math.Expm1(math.Log1p(*q.check.Allowed/100)+q.worse()*(2.576+1.282)*q.deviation())
}

// mostNeeded is the most launches that are advised.
const mostNeeded = 100

// needed is the number of launches a side that would decide the check, if they continue to vary as they do; 0: more
// than mostNeeded.
func (q *question) needed() int {
	is := math.Log1p(*q.compared.Percent / 100)
	detect := math.Log1p(*q.check.Detect / 100)
	pass := min(q.worse()*(detect-is), math.Abs(detect)) / 1.645
	fail := q.worse() * (is - math.Log1p(*q.check.Allowed/100)) / 2.576
	n := 2 / (1/float64(q.compared.Left.N) + 1/float64(q.compared.Right.N))
	times := q.deviation() / max(pass, fail)
	need := math.Ceil(n * times * times)
	if !(need <= mostNeeded) {
		return 0
	}
	return max(int(need), max(q.compared.Left.N, q.compared.Right.N)+1, stats.Suffice(q.out.Tests))
}

// outside says what may have made a figure worse beside what is under test: other programs on the machine or beside it,
// and programs that map the same files, of which PSS counts less while they run. Busy machines affect both sides of
// interleaved launches alike.
func (q *question) outside() string {
	if why := q.disturbed("the run's", q.now, compare.MoreStolen(q.base, q.now, 0)); why != "" {
		return why
	}
	if grown, of := q.grown(); of && grown < (q.compared.Right.Median-q.compared.Left.Median)/2 {
		return "the sum of RSS did not grow as much" + q.rss() +
			": other programs that map the same files change PSS and USS"
	}
	return ""
}

// disturbed says what else used the machine while a time or a rate was measured. It affects both sides of interleaved
// launches alike.
func (q *question) disturbed(whose string, c *compare.Cell, stolen string) string {
	f := c.Named(q.change.Figure.Name)
	if !f.TimeOrRate() || q.out.Interleaved {
		return ""
	}
	if words := busy(f); words != "" {
		return whose + " machine was busy: " + words
	}
	return stolen
}

// hidden says what may hide a regression: what made the baseline run slower, or its memory larger.
func (q *question) hidden() string {
	if why := q.disturbed(q.named+"'s", q.base, compare.MoreStolen(q.now, q.base, compare.Hiding)); why != "" {
		return why
	}
	grown, of := q.grown()
	least := math.Abs(*q.check.Detect) / 100 * q.compared.Left.Median
	if of && grown > least && grown > q.compared.Right.Median-q.compared.Left.Median {
		return "the sum of RSS grew" + q.rss() + ": other programs that map the same files change PSS and USS"
	}
	return ""
}

// grown is by how much the sum of RSS grew; false: other programs do not affect the figure, or it is unknown.
func (q *question) grown() (float64, bool) {
	name := q.change.Figure.Name
	was, is := q.base.Named(figure.PeakRSS), q.now.Named(figure.PeakRSS)
	if !strings.HasSuffix(name, "_pss") && name != figure.Increase && name != figure.PeakUSS || !was.Known() ||
		!is.Known() {
		return 0, false
	}
	return is.Center() - was.Center(), true
}

func (q *question) rss() string {
	return fmt.Sprintf(" (%s MiB, %s %s)", num(q.now.Named(figure.PeakRSS).Center()), q.called(),
		num(q.base.Named(figure.PeakRSS).Center()))
}

// few says so if so few launches could not have decided the check, whatever they measured.
func (q *question) few(sides string) (gates.Status, string) {
	a := q.compared
	missed, lost := q.lost()
	q.check.Needed = stats.Suffice(q.out.Tests) + missed
	why := fmt.Sprintf("%s; %d and %d launches are too few%s", sides, a.Left.N, a.Right.N, lost)
	if q.base.Spec.Reused || q.base.Spec.Isolation == "server" {
		why += ", and repetitions in one launch count once"
	}
	return gates.Inconclusive, why
}

// lost is the larger number of launches on a side that lack the figure, and why.
func (q *question) lost() (most int, why string) {
	for _, c := range []*compare.Cell{q.base, q.now} {
		f := c.Named(q.change.Figure.Name)
		if n := c.Launches.Counted - f.N; n > most && f.N > 0 {
			most, why = n, fmt.Sprintf("; %d of %s %s it", n, words.Count(c.Launches.Counted, c.Repeated()),
				explain.Plural(n, "lacks", "lack"))
			for _, w := range f.Warnings {
				if w.Code == explain.NoRate.Code {
					why = "; it " + w.Text
					break
				}
			}
		}
	}
	return most, why
}

// signed is a percentage with its sign.
func signed(v float64) string {
	text := num(math.Round(v*100) / 100)
	if v > 0 {
		text = "+" + text
	}
	return text + "%"
}

// quality compares a cell's scores of a given text with those of the baseline run's cell, window by window. Scores
// hardly vary from run to run, so the change on this text decides. The interval over windows is the change to expect on
// other texts.
func (j *judge) quality(check gates.Check, level gates.Level, c gates.Change, p pair) {
	changes, why := compare.QualityChanges(p.base, p.now, c.Figure.Name)
	if why = cmp.Or(p.why, why); why != "" {
		j.add(check, level, gates.Inconclusive, why)
		return
	}
	mean, _, _ := stats.Moments(changes)
	value, of := mean, func(v float64) float64 { return 100 * v } // the change of a divergence or disagreement from 0
	text := fmt.Sprintf("%s nats from %s", num(mean), j.named)
	switch c.Figure.Name {
	case figure.Perplexity:
		value, of = math.Expm1(mean), func(v float64) float64 { return 100 * math.Expm1(v) }
		check.Measured, check.Baseline = p.now.Figure(c.Figure.Name).Median, p.base.Figure(c.Figure.Name).Median
		text = fmt.Sprintf("%s, %s %s: %s", num(*check.Measured), called(j.named), num(*check.Baseline),
			signed(100*value))
	case figure.Top1:
		check.Measured = new(100 * (1 + mean))
		check.Name = fmt.Sprintf("%s with %s at least %s", check.Column, j.named, num(100*(1+c.Change)))
		text = num(*check.Measured) + "% with " + j.named
	default:
		check.Measured = new(mean)
		check.Name = fmt.Sprintf("%s from %s at most %s", check.Column, j.named, num(c.Change))
	}
	check.Unit, check.Percent = c.Figure.Unit, new(100*value)
	text += fmt.Sprintf(" on %d windows", len(changes))
	if i := stats.MeanInterval(changes, stats.Confidence); i != nil {
		check.PercentInterval = &stats.Interval{Lo: of(i.Lo), Hi: of(i.Hi), Confidence: i.Confidence}
		text += fmt.Sprintf("; 95%% CI over windows %s to %s", signed(of(i.Lo)), signed(of(i.Hi)))
	}
	status := gates.Passed
	if worse(c.Figure)*(value-c.Change) > 1e-9 {
		status = gates.Failed
	}
	if q := p.now.Quality; q.Absent > 0 && status == gates.Passed && c.Figure.Name == figure.Perplexity {
		status, text = gates.Inconclusive, text+fmt.Sprintf("; %d of %d log-probabilities are missing", q.Absent, q.Tokens)
	}
	j.add(check, level, status, text)
}
