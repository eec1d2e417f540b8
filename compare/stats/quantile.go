package stats

import (
	"math"
	"slices"
)

// NearestRank is the smallest value that a share of all is not above; NaN of nothing.
func NearestRank(values []float64, share float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	values = slices.Sorted(slices.Values(values))
	return values[max(0, int(math.Ceil(share*float64(len(values))))-1)]
}

// Sum of nothing is 0.
func Sum(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum
}

// Moments are those of all values, not of a sample of them; NaN of none.
func Moments(values []float64) (mean, most, deviation float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	mean, squares := Sum(values)/float64(len(values)), 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, slices.Max(values), math.Sqrt(squares / float64(len(values)))
}

// Step is a point of an empirical distribution.
type Step struct{ Value, Share float64 }

// StepsAtMost bounds what is drawn of a distribution.
const StepsAtMost = 200

// Ranked is the smallest of sorted values that a share of all is not above.
func Ranked(sorted []float64, share float64) float64 {
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
