// Package stats is the statistics of a comparison: floats in, floats out. It has intervals of medians, of their
// ratios and of changes, Mann and Whitney's test with Holm's correction, lines by Theil and Sen, trends, quantiles, and
// how many launches it takes to see a change. Nothing is assumed of a distribution but that launches are independent.
//
// It knows no figures, units or records, and can't tell whether values are independent: who gives it several values of
// one launch gets intervals that are too narrow. Fewer than six values a side have no interval. Means over many cells
// are drawn, always with the same seed; everything else is counted.
package stats

import (
	"math"
	"slices"

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
		if least := 2 / math.Exp(logChoose(2*n, n)); least*float64(max(questions, 1)) <= Alpha {
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
