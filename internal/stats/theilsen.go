package stats

import (
	"math"
	"slices"
)

// Point is a point to fit a line to.
type Point struct{ X, Y float64 }

// Line is a line through points.
type Line struct {
	Slope, Intercept float64
	Lo, Hi           float64 // of the slope; NaN where the points are too few for an interval
	Distinct         int     // different x
}

// PointsAtMost is how many points a line is fitted to, because all pairs of them are compared.
const PointsAtMost = 200

// TheilSen fits a line: its slope is the median slope of all pairs of points with different x, which a quarter of wrong
// points does not spoil. The interval is Sen's, by ranks of those slopes, for points with independent errors. It
// returns false if all points have the same x.
func TheilSen(points []Point) (Line, bool) { return LineThrough(Bucketed(points, PointsAtMost)) }

// LineThrough does the same without thinning the points: if several have the same x, thinning would drop most of them.
func LineThrough(points []Point) (Line, bool) {
	slopes := make([]float64, 0, len(points)*(len(points)-1)/2)
	for i, a := range points {
		for _, b := range points[:i] {
			if a.X != b.X {
				slopes = append(slopes, (a.Y-b.Y)/(a.X-b.X))
			}
		}
	}
	f := Line{Lo: math.NaN(), Hi: math.NaN()}
	if len(slopes) == 0 {
		return f, false
	}
	slices.Sort(slopes)
	if f.Slope = middle(slopes); f.Slope == 0 {
		f.Slope = 0 // it may have been minus 0
	}
	rest := make([]float64, len(points))
	for i, p := range points {
		rest[i] = p.Y - f.Slope*p.X
	}
	slices.Sort(rest)
	f.Intercept = middle(rest)
	f.Lo, f.Hi, f.Distinct = senInterval(slopes, points)
	return f, true
}

// middle is the median of sorted values.
func middle(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1]/2 + sorted[n/2]/2
}

// senInterval is the interval of Sen (1968), with his variance for points of equal x; ranks are rounded outwards.
// distinct is the number of different x.
func senInterval(slopes []float64, points []Point) (lo, hi float64, distinct int) {
	const z = 1.959963984540054 // of 95%
	xs := make([]float64, len(points))
	for i, p := range points {
		xs[i] = p.X
	}
	variance, distinct := kendallVariance(xs)
	c := z * math.Sqrt(variance)
	pairs := float64(len(slopes))
	lower, upper := int(math.Floor((pairs-c)/2)), int(math.Ceil((pairs+c)/2))+1
	if lower < 1 || upper > len(slopes) {
		return math.NaN(), math.NaN(), distinct
	}
	return slopes[lower-1], slopes[upper-1], distinct
}

// kendallVariance is the variance of Kendall's S with ties, and the number of distinct values.
func kendallVariance(values []float64) (variance float64, distinct int) {
	same := map[float64]float64{}
	for _, v := range values {
		same[v]++
	}
	of := func(n float64) float64 { return n * (n - 1) * (2*n + 5) }
	variance = of(float64(len(values)))
	for _, t := range same {
		variance -= of(t)
	}
	return variance / 18, len(same)
}

// Bucketed keeps at most n points: the first in each of n equal stretches of x.
func Bucketed(points []Point, n int) []Point {
	if len(points) <= n {
		return points
	}
	least, most := points[0].X, points[0].X
	for _, p := range points {
		least, most = min(least, p.X), max(most, p.X)
	}
	width := (most - least) / float64(n)
	if !(width > 0) { // one x, or none that is a number
		return points[:n]
	}
	out := make([]Point, 0, n)
	taken := make([]bool, n)
	for _, p := range points {
		if at := min(int((p.X-least)/width), n-1); at >= 0 && !taken[at] {
			taken[at] = true
			out = append(out, p)
		}
	}
	return out
}

// RobustDeviation is the median distance from the median, scaled to the standard deviation of normal values; 0 if more
// than half of all values are equal.
func RobustDeviation(values []float64) float64 {
	center := Median(values)
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - center)
	}
	return 1.4826 * Median(distances)
}

// Drift is the Theil-Sen slope from one value to the next, and the p of Mann and Kendall's test that there is none.
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
	variance, distinct := kendallVariance(values)
	if distinct == n && n <= exactly {
		return fit.Slope, kendall(n, s)
	}
	if variance <= 0 || s == 0 {
		return fit.Slope, 1
	}
	return fit.Slope, math.Erfc((math.Abs(float64(s)) - 1) / math.Sqrt(2*variance))
}

// kendall is the p of Kendall's S for n values without ties: the share of all orders whose S is at least as far from 0.
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
