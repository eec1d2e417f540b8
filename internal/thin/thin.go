// Package thin draws long series with few points and loses no peak.
//
// It cuts a series into stretches of equally many points and keeps the first, the lowest and the highest point of each,
// and the very last point. So a drawing shows the range of the values in each stretch. LTTB (largest triangle three
// buckets) would draw smoother lines, but it keeps one point for each stretch and may omit a peak.
package thin

import "math"

// Points returns at most about n points of a series in their order. A point whose y is NaN is a gap. If there are gaps
// between two kept points, it keeps one of them as well, in addition to n, so that no line is drawn across it.
func Points[P any](points []P, n int, y func(P) float64) []P {
	if len(points) <= n || n < 4 {
		return points
	}
	out, next := make([]P, 0, n+4), 0 // next: the index after the last kept point
	keep := func(i int) {
		if i < next {
			return // already kept
		}
		for ; next < i; next++ {
			if math.IsNaN(y(points[next])) {
				out = append(out, points[next])
				break
			}
		}
		next, out = i+1, append(out, points[i])
	}
	each := (len(points) + n/3 - 1) / (n / 3)
	for begin := 0; begin < len(points); begin += each {
		lo, hi := extremes(points, begin, min(begin+each, len(points)), y)
		keep(begin)
		keep(min(lo, hi))
		keep(max(lo, hi))
	}
	keep(len(points) - 1)
	return out
}

// extremes returns the first lowest and the first highest point of a stretch, or its first point if all are gaps.
func extremes[P any](points []P, begin, end int, y func(P) float64) (lo, hi int) {
	least, most := math.Inf(1), math.Inf(-1)
	lo, hi = begin, begin
	for i := begin; i < end; i++ {
		v := y(points[i])
		if v < least {
			least, lo = v, i
		}
		if v > most {
			most, hi = v, i
		}
	}
	return lo, hi
}
