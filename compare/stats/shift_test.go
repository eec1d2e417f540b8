package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Ranks are those of published tables of the test, of 1% and of 10% two-sided; of many launches those of the bell
// curve are at most one less.
func TestRankOfShift(t *testing.T) {
	for _, c := range []struct {
		share   float64
		n, m, k int
	}{{0.005, 4, 4, 0}, {0.005, 5, 5, 1}, {0.005, 6, 6, 3}, {0.005, 8, 8, 8}, {0.005, 10, 10, 17}, {0.005, 6, 10,
		7}, {0.005, 20, 20, 106},
		{0.05, 5, 5, 5}, {0.05, 6, 6, 8}, {0.05, 10, 10, 28}, {0.05, 10, 6, 15}, {0.05, 20, 20, 139}} {
		if got := rankOf(c.share, c.n, c.m); got != c.k {
			t.Errorf("rankOf(%g, %d, %d) = %d, want %d", c.share, c.n, c.m, got, c.k)
		}
	}
	for _, share := range []float64{0.005, 0.05} {
		if few, many := rankOf(share, 30, 30), rankOf(share, 31, 30); many < few || many > few+12 {
			t.Errorf("%g: %d of 30 and 30, %d of 31 and 30", share, few, many)
		}
	}
}

// The interval has the truth in it as often as it says, of tails that are long and of launches that are few.
func TestShiftCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	const times = 2000
	for _, n := range []int{6, 10} {
		missed := map[float64]int{}
		for range times {
			a, b := make([]float64, n), make([]float64, n)
			for i := range a {
				a[i], b[i] = math.Exp(0.1*r.ExpFloat64()), 1.2*math.Exp(0.1*r.ExpFloat64())
			}
			s := NewSides(a, b)
			percent := 100 * (Median(b)/Median(a) - 1)
			for _, level := range []float64{Usual, Sure} {
				if i := s.Shift(level, &percent); i.Lo > 20 || i.Hi < 20 {
					missed[level]++
				}
			}
		}
		for level, most := range map[float64]float64{Usual: 0.11, Sure: 0.013} {
			if share := float64(missed[level]) / times; share > most {
				t.Errorf("%d launches a side: the interval of %g misses %.2f%%", n, level, 100*share)
			}
		}
	}
}

func TestShiftHasTheRatioOfMediansInIt(t *testing.T) {
	a, b := []float64{1, 1, 1, 1, 9, 9, 9, 9, 9, 9}, []float64{1, 1, 1, 1, 1, 1, 9, 9, 9, 9}
	percent := 100 * (1.0/9 - 1)
	if i := NewSides(a, b).Shift(Usual, &percent); i.Lo > percent || i.Hi < percent {
		t.Errorf("%+v without %g", i, percent)
	}
	if NewSides(a[:5], b).Shift(Sure, &percent) != nil || NewSides(a, b).Shift(Sure, nil) != nil {
		t.Error("too few launches, or no share, have an interval")
	}
}
