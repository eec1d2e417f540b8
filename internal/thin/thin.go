// Package thin draws long series with few points and loses no peak.
//
// It cuts a series into stretches of equal length on the x axis and keeps the first, the lowest and the highest point
// of each, and the very last point. So a drawing shows the range of the values in each stretch. LTTB (largest triangle
// three buckets) would draw smoother lines, but it keeps one point for each stretch and may omit a peak.
package thin

import "math"

// Points returns at most about n points of a series in their order. A point whose y is NaN is a gap. If there are gaps
// between two kept points, it keeps one of them as well, in addition to n, so that no line is drawn across it.
func Points[P any](points []P, n int, at func(P) (x, y float64)) []P {
	if len(points) <= n || n < 4 {
		return points
	}
	s := series[P]{points: points, at: at}
	s.stretches(n / 3)
	out := make([]P, 0, n+4)
	for begin := 0; begin < len(points); {
		end := s.end(begin)
		lo, hi := s.extremes(begin, end)
		for _, i := range []int{begin, min(lo, hi), max(lo, hi)} {
			out = s.keep(out, i)
		}
		begin = end
	}
	return s.keep(out, len(points)-1)
}

type series[P any] struct {
	points []P
	at     func(P) (x, y float64)
	least  float64 // x where the first stretch begins
	step   float64 // length of a stretch; 0: each has a fixed number of points
	each   int     // points in a stretch, if step is 0
	kept   int     // index after the last kept point
}

// stretches cuts the series by x, or by number of points if x is constant or not finite.
func (s *series[P]) stretches(n int) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, p := range s.points {
		x, _ := s.at(p)
		least, most = min(least, x), max(most, x)
	}
	s.least, s.step = least, most/float64(n)-least/float64(n)
	if !(s.step > 0) || math.IsInf(s.step, 0) || math.IsInf(least, 0) {
		s.step, s.each = 0, (len(s.points)+n-1)/n
	}
}

// end returns the end of the stretch that starts at begin. Points where x goes backwards belong to it.
func (s *series[P]) end(begin int) int {
	if s.step == 0 {
		return min(begin+s.each, len(s.points))
	}
	i := begin + 1
	for in := s.stretch(begin); i < len(s.points) && s.stretch(i) <= in; i++ {
	}
	return i
}

// stretch returns the number of the stretch of a point. Comparing with its computed end would suffer from rounding.
func (s *series[P]) stretch(i int) float64 {
	x, _ := s.at(s.points[i])
	return math.Floor((x - s.least) / s.step)
}

// extremes returns the first lowest and the first highest point of a stretch, or its first point if all are gaps.
func (s *series[P]) extremes(begin, end int) (lo, hi int) {
	least, most := math.Inf(1), math.Inf(-1)
	lo, hi = begin, begin
	for i := begin; i < end; i++ {
		_, y := s.at(s.points[i])
		if y < least {
			least, lo = y, i
		}
		if y > most {
			most, hi = y, i
		}
	}
	return lo, hi
}

// keep appends a point, and before it the first gap since the last kept point.
func (s *series[P]) keep(out []P, i int) []P {
	if i < s.kept {
		return out // already kept
	}
	for ; s.kept < i; s.kept++ {
		if _, y := s.at(s.points[s.kept]); math.IsNaN(y) {
			out = append(out, s.points[s.kept])
			break
		}
	}
	s.kept = i + 1
	return append(out, s.points[i])
}
