package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// orders lists all of them.
func orders(values []float64) (all [][]float64) {
	if len(values) == 0 {
		return [][]float64{nil}
	}
	for i, v := range values {
		for _, rest := range orders(append(slices.Clone(values[:i]), values[i+1:]...)) {
			all = append(all, append([]float64{v}, rest...))
		}
	}
	return all
}

func pairs(values []float64) (s int) {
	for i, v := range values {
		for _, w := range values[i+1:] {
			if w > v {
				s++
			} else {
				s--
			}
		}
	}
	return s
}

func TestDriftPCountsAllOrders(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	all := orders([]float64{1, 2, 3, 4, 5, 6})
	for range 20 {
		values := all[r.IntN(len(all))]
		seen, out := pairs(values), 0.0
		for _, o := range all {
			if s := pairs(o); max(s, -s) >= max(seen, -seen) {
				out++
			}
		}
		if _, p := Drift(values); math.Abs(p-out/float64(len(all))) > 1e-9 {
			t.Errorf("%v: p = %v, of all orders %v", values, p, out/float64(len(all)))
		}
	}
}
