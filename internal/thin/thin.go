// Package thin draws long series with few points and loses no peak.
//
// A series is cut into stretches of equal length on the x axis, and of each the first point, the lowest and the highest
// are kept, and the last point of all: whoever looks at the drawing sees the range that the values had in each stretch.
// That is on purpose not LTTB (largest triangle three buckets), which keeps one point a stretch, the one that makes the
// largest triangle with its neighbours: it draws smoother lines, and may leave a peak out.
//
// What was between the lowest and the highest point of a stretch is not kept, nor is how often it was there.
package thin

import "math"

// Points gives at most about n points of a series, in their order; of a short series all. A point whose y is NaN is a
// gap: where there is one between two points that are kept, one is kept between them, so that no line is drawn over it;
// gaps come on top of n.
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
	least  float64 // x where stretches begin
	step   float64 // the length of one; 0: they are of so many points each
	each   int
	kept   int // points that were looked at: the next after the last that was kept
}

// stretches cuts the series by x. Where x is of no use, because it is one moment, or not finite, it cuts it by numbers
// of points.
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

// end is where the stretch that begins at a point ends. A point that lies before it, because x went backwards, is in
// it.
func (s *series[P]) end(begin int) int {
	if s.step == 0 {
		return min(begin+s.each, len(s.points))
	}
	i := begin + 1
	for in := s.stretch(begin); i < len(s.points) && s.stretch(i) <= in; i++ {
	}
	return i
}

// stretch is the number of the one that a point's x is in. Where it ends is not computed: that might be rounded to
// before the point.
func (s *series[P]) stretch(i int) float64 {
	x, _ := s.at(s.points[i])
	return math.Floor((x - s.least) / s.step)
}

// extremes are the first lowest and the first highest point of a stretch; its first one where it is all gap.
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

// keep takes a point, and the first gap since the one before it.
func (s *series[P]) keep(out []P, i int) []P {
	if i < s.kept {
		return out // it has been taken
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
