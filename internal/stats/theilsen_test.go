package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPointsWithOneXHaveNoSlope(t *testing.T) {
	for _, points := range [][]Point{nil, {{1, 2}}, {{4, 1}, {4, 9}, {4, 5}}} {
		if f, ok := TheilSen(points); ok {
			t.Errorf("%v: %+v", points, f)
		}
	}
	if f, ok := TheilSen([]Point{{1, 2}, {2, 3}, {3, 5}}); !ok || !math.IsNaN(f.Lo) || !math.IsNaN(f.Hi) {
		t.Errorf("3 points are too few for an interval: %+v, %v", f, ok)
	}
}

// The interval holds the true slope as often as it says, also where many points have one x and where errors have long
// tails.
func TestSensIntervalCoversTheTruth(t *testing.T) {
	const trials, truth = 2000, 4.0
	for name, design := range map[string][]float64{
		"each its own x":       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
		"three x, four a time": {1, 1, 1, 1, 2, 2, 2, 2, 8, 8, 8, 8},
		"two x, six a time":    {25, 25, 25, 25, 25, 25, 250, 250, 250, 250, 250, 250},
		"seven points":         {0, 1, 2, 3, 4, 5, 6},
	} {
		seeds := rand.NewPCG(3, 5)
		r := rand.New(seeds)
		for tails, noise := range map[string]func() float64{"normal": r.NormFloat64,
			"long tails": func() float64 { return r.NormFloat64() / max(0.05, r.Float64()) }} {
			seeds.Seed(3, 5) // of each its own numbers: maps have no order
			held := 0
			for range trials {
				points := make([]Point, len(design))
				for i, x := range design {
					points[i] = Point{x, truth*x + 3*noise()}
				}
				f, ok := TheilSen(points)
				if !ok || math.IsNaN(f.Lo) {
					t.Fatalf("%s: no interval: %+v", name, f)
				}
				if f.Lo <= truth && truth <= f.Hi {
					held++
				}
			}
			if share := float64(held) / trials; share < 0.94 || share > 0.995 {
				t.Errorf("%s, %s errors: the interval held the truth in %.1f%% of %d trials, want 95%%", name, tails,
					100*share, trials)
			}
		}
	}
}

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
