package stats

import (
	"cmp"
	"math"
	"slices"
)

// Apportioned rounds the parts of a whole so that they add up to the rounded whole: it rounds each down and gives the
// rest to those with the largest remainders (Hamilton's method). No part moves by a whole unit of the last place. Parts
// that do not add up to the whole are rounded one by one. NaN stays NaN and counts as nothing.
func Apportioned(whole float64, parts []float64, decimals int) []float64 {
	unit := math.Pow10(decimals)
	out, order, left := make([]float64, len(parts)), []int{}, math.Round(whole*unit)
	remainder := make([]float64, len(parts))
	sum := 0.0
	for i, v := range parts {
		if out[i] = v; math.IsNaN(v) {
			continue
		}
		scaled := Round(v*unit, 6) // 0.3 x 10 is 3, whatever the last bit says
		out[i] = math.Floor(scaled)
		remainder[i], order = scaled-out[i], append(order, i)
		sum, left = sum+v, left-out[i]
	}
	if !(math.Abs(sum-whole)*unit <= 1) || left < 0 || left > float64(len(order)) {
		for i, v := range parts {
			out[i] = math.Round(v*unit) / unit
		}
		return out
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainder[b], remainder[a]) })
	for n, i := range order {
		if float64(n) < left {
			out[i]++
		}
		out[i] /= unit
	}
	return out
}
