package reports

import thinning "llmparity/internal/thin"

// xy is a point of a series.
type xy struct{ x, y float64 }

// thin keeps at most about n points of a series, and every peak.
func thin(points []xy, n int) []xy {
	return thinning.Points(points, n, func(p xy) (x, y float64) { return p.x, p.y })
}
