package stats

import (
	"math"
	"slices"
)

// Point is a point of a line that is to be found.
type Point struct{ X, Y float64 }

// Line is a line through points.
type Line struct {
	Slope, Intercept float64
	Lo, Hi           float64 // of the slope; NaN where the points are too few for an interval
	Distinct         int     // different x
}

// PointsAtMost bounds what a line is fitted to: all pairs of points are looked at.
const PointsAtMost = 200

// TheilSen fits a line: its slope is the median over the slopes between all pairs of points with different x, which a
// quarter of the points may spoil. The interval is Sen's: by ranks of those slopes, for points whose errors are
// independent. false where all points have one x.
func TheilSen(points []Point) (Line, bool) { return LineThrough(Bucketed(points, PointsAtMost)) }

// LineThrough is the same of all points: several may have one x, and stretches of x would leave most of those out.
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

// senInterval is that of Sen (1968), with his variance for points of equal x; ranks are rounded outwards. distinct is
// how many x there are.
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

// kendallVariance is that of how many more pairs are in order than not, with equal values among them; and how many
// values are distinct.
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

// Bucketed keeps at most n points: the first of each of n equal stretches of x.
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
	variance, distinct := kendallVariance(values)
	if distinct == n && n <= exactly {
		return fit.Slope, kendall(n, s)
	}
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
