// Package stats is the statistics of a comparison: floats in, floats out. It has intervals of medians, of their
// ratios and of changes, Student's interval of a mean, Mann and Whitney's test with Holm's correction, lines by Theil
// and Sen, trends, quantiles, and how many launches it takes to see a change. Nothing is assumed of a distribution but
// that launches are independent.
//
// It knows no figures, units or records, and can't tell whether values are independent: who gives it several values of
// one launch gets intervals that are too narrow. Fewer than six values a side have no interval. Means over many cells
// are drawn, always with the same seed; everything else is counted.
package stats

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/mathx"
	moremath "github.com/aclements/go-moremath/stats"
	"github.com/aclements/go-moremath/vec"
	"golang.org/x/perf/benchmath"
)

// A regression is found where the interval of 99% lies beyond what is tolerated: gates ask at every change of a
// program, often of runs that were made at other times, between which a machine changes in ways that no launch shows.
// One is ruled out by the interval of 90%, which is a test at 5% on the side that matters: every check of a gate must
// pass, so that wrong passes do not add up as wrong failures do.
const (
	Sure  = 0.99
	Usual = 0.90
)

// Suffice is the fewest launches a side with which each of so many questions can be answered, and has an interval.
func Suffice(questions int) int {
	for n := MinRuns; ; n++ {
		if least := 2 / math.Exp(mathx.Lchoose(2*n, n)); least*float64(max(questions, 1)) <= Alpha {
			return n
		}
	}
}

// Alpha is the most families of equals, as a share, in which any difference may be called one.
const Alpha = 0.05

// Confidence is that of every interval.
const Confidence = 0.95

// Interval is an order-statistic interval of the median. Its confidence is at least the one asked for.
type Interval struct {
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	Confidence float64 `json:"confidence"`
}

// MedianInterval is that of the median with at least a confidence, and the one it has; nil where values are too few for
// one.
func MedianInterval(values []float64, confidence float64) *Interval {
	s := benchmath.AssumeNothing.Summary(sampleOf(values), confidence)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) || math.IsNaN(s.Lo) || math.IsNaN(s.Hi) {
		return nil
	}
	return &Interval{Lo: s.Lo, Hi: s.Hi, Confidence: s.Confidence}
}

// MeanInterval is Student's interval of the mean, for values that vary around it alike; nil for fewer than two values.
func MeanInterval(values []float64, confidence float64) *Interval {
	if len(values) < 2 {
		return nil
	}
	_, lo, hi := moremath.MeanCI(values, confidence)
	return &Interval{Lo: lo, Hi: hi, Confidence: confidence}
}

// Median of nothing is NaN.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return middle(slices.Sorted(slices.Values(values)))
}

// Round is to so many digits behind the point.
func Round(v float64, digits int) float64 {
	if math.Abs(v) > 1e15 {
		// It has no such digits, and times p it might be no number. What is more than any number is the largest: it can
		// be written.
		return max(min(v, math.MaxFloat64), -math.MaxFloat64)
	}
	p := math.Pow(10, float64(digits))
	return math.Round(v*p) / p
}

// MinRuns is the least number of launches with a 95% order-statistic interval of the median.
const MinRuns = 6

// Moments are those of all values, not of a sample of them; NaN of none.
func Moments(values []float64) (mean, most, deviation float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	mean, squares := vec.Sum(values)/float64(len(values)), 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, slices.Max(values), math.Sqrt(squares / float64(len(values)))
}

// Step is a point of an empirical distribution.
type Step struct{ Value, Share float64 }

// StepsAtMost bounds what is drawn of a distribution.
const StepsAtMost = 200

// Ranked is the smallest of sorted values that a share of all is not above, by nearest rank; NaN of nothing.
func Ranked(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))-1e-9))-1)]
}

// Steps are all of an empirical distribution, or as many as are drawn, evenly; the least and the highest among them.
func Steps(sorted []float64) []Step {
	n := len(sorted)
	var out []Step
	for k := range min(n, StepsAtMost) {
		i := k
		if n > StepsAtMost {
			i = k * (n - 1) / (StepsAtMost - 1)
		}
		s := Step{sorted[i], float64(i+1) / float64(n)}
		if len(out) > 0 && out[len(out)-1].Value == s.Value {
			out[len(out)-1].Share = s.Share
			continue
		}
		out = append(out, s)
	}
	return out
}
