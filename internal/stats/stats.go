// Package stats has the statistics of a comparison: floats in, floats out. It has intervals of medians, ratios, changes
// and means, Mann and Whitney's test with Holm's correction, lines by Theil and Sen, trends, quantiles, and how many
// launches it takes to see a change. It assumes that launches are independent, and nothing about their distribution.
//
// It knows no figures, units or records, and cannot check that values are independent: with several values of one
// launch, intervals are too narrow. Fewer than six values a side have no interval. Means over many cells are drawn with
// a fixed seed; everything else is exact.
package stats

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/mathx"
	moremath "github.com/aclements/go-moremath/stats"
	"github.com/aclements/go-moremath/vec"
	"golang.org/x/perf/benchmath"
)

// A gate finds a regression if the 99% interval lies beyond the tolerance. It is that strict because gates check every
// change of a program, often against runs of another day, between which a machine changes in ways that no launch shows.
// A gate rules a regression out by the 90% interval, which is a test at 5% on the side that matters: every check must
// pass, so wrong passes do not add up as wrong failures do.
const (
	Sure  = 0.99
	Usual = 0.90
)

// Suffice is the fewest launches a side that can decide each of so many questions and give it an interval.
func Suffice(questions int) int {
	for n := MinRuns; ; n++ {
		if least := 2 / math.Exp(mathx.Lchoose(2*n, n)); least*float64(max(questions, 1)) <= Alpha {
			return n
		}
	}
}

// Alpha is the largest share of families without a difference in which one may be found.
const Alpha = 0.05

// Confidence is the confidence of intervals.
const Confidence = 0.95

// Interval is an order-statistic interval of the median. Its confidence is at least the requested one.
type Interval struct {
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	Confidence float64 `json:"confidence"`
}

// MedianInterval is an interval of the median with at least the given confidence; nil if there are too few values.
func MedianInterval(values []float64, confidence float64) *Interval {
	s := benchmath.AssumeNothing.Summary(sampleOf(values), confidence)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) || math.IsNaN(s.Lo) || math.IsNaN(s.Hi) {
		return nil
	}
	return &Interval{Lo: s.Lo, Hi: s.Hi, Confidence: s.Confidence}
}

// MeanInterval is Student's interval of the mean, for values that are about normal; nil for fewer than two values.
func MeanInterval(values []float64, confidence float64) *Interval {
	if len(values) < 2 {
		return nil
	}
	_, lo, hi := moremath.MeanCI(values, confidence)
	return &Interval{Lo: lo, Hi: hi, Confidence: confidence}
}

// Median is NaN for no values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return middle(slices.Sorted(slices.Values(values)))
}

// Round rounds to so many digits after the decimal point.
func Round(v float64, digits int) float64 {
	if math.Abs(v) > 1e15 {
		// Such a number has no digits after the point, and v*p may overflow. Infinity becomes the largest number, which
		// JSON can hold.
		return max(min(v, math.MaxFloat64), -math.MaxFloat64)
	}
	p := math.Pow(10, float64(digits))
	return math.Round(v*p) / p
}

// MinRuns is the smallest number of launches with a 95% order-statistic interval of the median.
const MinRuns = 6

// Moments treats the values as the whole population, not a sample; NaN for no values.
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

// StepsAtMost is how many steps of a distribution are drawn.
const StepsAtMost = 200

// Ranked is the quantile of sorted values by nearest rank; NaN for no values.
func Ranked(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))-1e-9))-1)]
}

// Steps are the steps of an empirical distribution: all, or an even selection that keeps the first and the last.
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
