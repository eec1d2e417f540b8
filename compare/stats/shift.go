package stats

import (
	"math"
	"slices"
)

// Shift is the interval of a change in percent that Mann and Whitney's test does not tell from what was seen: all
// launches of one side over all of the other's, from the k-th ratio to the k-th last. Of equal distributions,
// whatever their shape, it holds with at least its confidence, and it is a fifth narrower than that of the ratio of
// medians. Where that ratio itself lies outside, the interval reaches to it. nil where there are too few launches, or
// no ratio makes sense.
func (s Sides) Shift(level float64, percent *float64) *Interval {
	if s.Few || !s.positive || percent == nil {
		return nil
	}
	out := (1 - level) / 2
	k := rankOf(out, len(s.A), len(s.B))
	if k == 0 {
		return nil
	}
	ratios := make([]float64, 0, len(s.A)*len(s.B))
	for _, was := range s.A {
		for _, is := range s.B {
			ratios = append(ratios, is/was)
		}
	}
	slices.Sort(ratios)
	change := func(ratio float64) float64 { return Round(100*(ratio-1), 6) }
	return &Interval{Lo: min(*percent, change(ratios[k-1])), Hi: max(*percent, change(ratios[len(ratios)-k])),
		Confidence: level}
}

// rankOf is how many of the lowest ratios of n values and m others may be left out so that no more than a share of
// all orders has its own beyond them; 0: none.
func rankOf(share float64, n, m int) int {
	if n+m > exactly {
		middle, deviation := float64(n*m)/2, math.Sqrt(float64(n*m*(n+m+1))/12)
		return max(0, int(math.Floor(middle-0.5-deviation*math.Sqrt2*math.Erfinv(1-2*share))))
	}
	// How many orders have so many pairs with the other value first: the coefficients of a Gaussian binomial.
	ways := make([]float64, n*m+1)
	ways[0] = 1
	for i := 1; i <= n; i++ {
		for at := len(ways) - 1; at >= m+i; at-- {
			ways[at] -= ways[at-m-i]
		}
		for at := i; at < len(ways); at++ {
			ways[at] += ways[at-i]
		}
	}
	allowed, sum := share*math.Exp(logChoose(n+m, n))*(1+1e-9), 0.0
	for k, w := range ways {
		if sum += w; sum > allowed {
			return k
		}
	}
	return len(ways)
}
