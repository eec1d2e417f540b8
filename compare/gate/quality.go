package gate

import (
	"cmp"
	"fmt"
	"math"

	"llmparity/compare"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
)

// quality holds what a cell makes of a given text against what the baseline run's cell made of it, window by window.
// Scores hardly vary from run to run, so the change on this text decides. The interval over windows says what the
// change may be on others.
func (j *judge) quality(check gates.Check, level gates.Level, c gates.Change, p pair) {
	changes, why := compare.QualityChanges(p.base, p.now, c.Figure.Name)
	if why = cmp.Or(p.why, why); why != "" {
		j.add(check, level, gates.Inconclusive, why)
		return
	}
	mean, _, _ := stats.Moments(changes)
	value, of := mean, func(v float64) float64 { return 100 * v } // a divergence or disagreement is one from nothing
	text := fmt.Sprintf("%s nats from the baseline run", num(mean))
	switch c.Figure.Name {
	case figure.Perplexity:
		value, of = math.Expm1(mean), func(v float64) float64 { return 100 * math.Expm1(v) }
		check.Measured, check.Baseline = p.now.Figure(c.Figure.Name).Median, p.base.Figure(c.Figure.Name).Median
		text = fmt.Sprintf("%s, baseline run %s: %s", num(*check.Measured), num(*check.Baseline), signed(100*value))
	case figure.Top1:
		check.Measured = new(100 * (1 + mean))
		check.Name = fmt.Sprintf("%s with the baseline run at least %s", check.Column, num(100*(1+c.Change)))
		text = num(*check.Measured) + "% with the baseline run"
	default:
		check.Measured = new(mean)
		check.Name = fmt.Sprintf("%s from the baseline run at most %s", check.Column, num(c.Change))
	}
	check.Unit, check.Percent = c.Figure.Unit, new(100*value)
	text += fmt.Sprintf(" on %d windows", len(changes))
	if i := stats.MeanInterval(changes, stats.Confidence); i != nil {
		check.PercentInterval = &stats.Interval{Lo: of(i.Lo), Hi: of(i.Hi), Confidence: i.Confidence}
		text += fmt.Sprintf("; 95%% CI over windows %s to %s", signed(of(i.Lo)), signed(of(i.Hi)))
	}
	came := gates.Passed
	if worse(c.Figure)*(value-c.Change) > 1e-9 {
		came = gates.Failed
	}
	j.add(check, level, came, text)
}
