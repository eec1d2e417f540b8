package stats

import (
	"math"
	"slices"
)

// RobustDeviation goes by the median distance from the median, scaled to be the standard deviation of a bell curve; 0
// where more than half of all values are equal.
func RobustDeviation(values []float64) float64 {
	center := Median(values)
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - center)
	}
	return 1.4826 * Median(distances)
}

// Drift is Theil and Sen's slope from one value to the next, and Mann and Kendall's p of there being none.
func Drift(values []float64) (slope, p float64) {
	n, s := len(values), 0
	points := make([]Point, n)
	for i := range values {
		points[i] = Point{float64(i), values[i]}
		for _, before := range values[:i] {
			switch {
			case values[i] > before:
				s++
			case values[i] < before:
				s--
			}
		}
	}
	if n < 2 {
		return 0, 1
	}
	fit, _ := TheilSen(points)
	sorted := slices.Sorted(slices.Values(values))
	ties := 0.0
	for i := 0; i < n; {
		j := i
		for j < n && sorted[j] == sorted[i] {
			j++
		}
		t := float64(j - i)
		ties += t * (t - 1) * (2*t + 5)
		i = j
	}
	if ties == 0 && n <= exactly {
		return fit.Slope, kendall(n, s)
	}
	N := float64(n)
	variance := (N*(N-1)*(2*N+5) - ties) / 18
	if variance <= 0 || s == 0 {
		return fit.Slope, 1
	}
	return fit.Slope, math.Erfc((math.Abs(float64(s)) - 1) / math.Sqrt(2*variance))
}

// kendall is the share of all orders of n values whose pairs are in order, less those that are not, by as many as s or
// more, either way.
func kendall(n, s int) float64 {
	ways := []float64{1} // by the number of pairs that are not in order, as a share
	for k := 2; k <= n; k++ {
		next := make([]float64, len(ways)+k-1)
		for i, w := range ways {
			for d := range k {
				next[i+d] += w / float64(k)
			}
		}
		ways = next
	}
	all := n * (n - 1) / 2
	p := 0.0
	for inverted, share := range ways {
		if d := all - 2*inverted; max(d, -d) >= max(s, -s) {
			p += share
		}
	}
	return min(1, p)
}
