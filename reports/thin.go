package reports

import (
	"cmp"
	"math"
	"slices"
)

// xy is a point of a series.
type xy struct{ x, y float64 }

func byY(a, b xy) int { return cmp.Compare(a.y, b.y) }

// thin keeps at most about n points of a series: of each stretch of x the first, the lowest and the highest, so that no peak is
// lost. The last point stays too.
func thin(points []xy, n int) []xy {
	if len(points) <= n || n < 4 {
		return points
	}
	begin, end := points[0].x, points[len(points)-1].x
	buckets := n / 3
	step := (end - begin) / float64(buckets)
	if step <= 0 || math.IsNaN(step) { // all at one time
		return []xy{slices.MinFunc(points, byY), slices.MaxFunc(points, byY)}
	}
	out := make([]xy, 0, n+4)
	for i := 0; i < len(points)-1; {
		edge := begin + step*(math.Floor((points[i].x-begin)/step)+1)
		lo, hi, j := i, i, i
		for ; j < len(points)-1 && (j == i || points[j].x < edge); j++ {
			if points[j].y < points[lo].y {
				lo = j
			}
			if points[j].y > points[hi].y {
				hi = j
			}
		}
		for k, at := range []int{i, min(lo, hi), max(lo, hi)} {
			if k == 0 || at != i && out[len(out)-1] != points[at] {
				out = append(out, points[at])
			}
		}
		i = j
	}
	return append(out, points[len(points)-1])
}
