package stats

import (
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
