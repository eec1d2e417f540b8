package compare

import (
	"math"
	"slices"
)

// xy is a point of a line that is to be found.
type xy struct{ x, y float64 }

// fitted is a line through points.
type fitted struct {
	slope, intercept float64
	lo, hi           float64 // of the slope; NaN where the points are too few for an interval
	n                int
	distinct         int // different x
}

// pointsAtMost bounds what a line is fitted to: all pairs of points are looked at.
const pointsAtMost = 200

// theilSen fits a line: its slope is the median over the slopes between all pairs of points with different x, which a
// quarter of the points may spoil. The interval is Sen's: by ranks of those slopes, for points whose errors are
// independent. false where all points have one x.
func theilSen(points []xy) (fitted, bool) { return lineThrough(bucketed(points, pointsAtMost)) }

// lineThrough is the same of all points: several may have one x, and stretches of x would leave most of those out.
func lineThrough(points []xy) (fitted, bool) {
	slopes := make([]float64, 0, len(points)*(len(points)-1)/2)
	for i, a := range points {
		for _, b := range points[:i] {
			if a.x != b.x {
				slopes = append(slopes, (a.y-b.y)/(a.x-b.x))
			}
		}
	}
	f := fitted{n: len(points), lo: math.NaN(), hi: math.NaN()}
	if len(slopes) == 0 {
		return f, false
	}
	slices.Sort(slopes)
	if f.slope = middle(slopes); f.slope == 0 {
		f.slope = 0 // it may have been minus 0
	}
	rest := make([]float64, len(points))
	for i, p := range points {
		rest[i] = p.y - f.slope*p.x
	}
	slices.Sort(rest)
	f.intercept = middle(rest)
	f.lo, f.hi, f.distinct = senInterval(slopes, points)
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
func senInterval(slopes []float64, points []xy) (lo, hi float64, distinct int) {
	const z = 1.959963984540054 // of 95 %
	same := map[float64]float64{}
	for _, p := range points {
		same[p.x]++
	}
	n := float64(len(points))
	variance := n * (n - 1) * (2*n + 5)
	for _, t := range same {
		variance -= t * (t - 1) * (2*t + 5)
	}
	c := z * math.Sqrt(variance/18)
	pairs := float64(len(slopes))
	lower, upper := int(math.Floor((pairs-c)/2)), int(math.Ceil((pairs+c)/2))+1
	if lower < 1 || upper > len(slopes) {
		return math.NaN(), math.NaN(), len(same)
	}
	return slopes[lower-1], slopes[upper-1], len(same)
}

// bucketed keeps at most n points: the first of each of n equal stretches of x.
func bucketed(points []xy, n int) []xy {
	if len(points) <= n {
		return points
	}
	least, most := points[0].x, points[0].x
	for _, p := range points {
		least, most = min(least, p.x), max(most, p.x)
	}
	width := (most - least) / float64(n)
	if !(width > 0) { // one x, or none that is a number
		return points[:n]
	}
	out := make([]xy, 0, n)
	taken := make([]bool, n)
	for _, p := range points {
		if at := min(int((p.x-least)/width), n-1); at >= 0 && !taken[at] {
			taken[at] = true
			out = append(out, p)
		}
	}
	return out
}
