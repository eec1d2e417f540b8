package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every way to draw a sample from itself, one by one.
func TestMedianLawCountsAllDraws(t *testing.T) {
	for _, sample := range [][]float64{{3}, {1, 5}, {2, 2, 9}, {1, 2, 4, 8}, {7, 7, 7, 7}, {5, 1, 3, 2, 8},
		{9, 1, 1, 4, 6, 2}} {
		n := len(sample)
		chances := map[float64]float64{}
		drawn, ways := make([]int, n), math.Pow(float64(n), float64(n))
		for range int(ways) {
			values := make([]float64, n)
			for i, at := range drawn {
				values[i] = sample[at]
			}
			chances[Median(values)] += 1 / ways
			for i := range drawn {
				if drawn[i]++; drawn[i] < n {
					break
				}
				drawn[i] = 0
			}
		}
		l, before := medianLaw(sample), 0.0
		for i, v := range l.values {
			chances[v] -= l.upTo[i] - before
			before = l.upTo[i]
		}
		for v, off := range chances {
			if math.Abs(off) > 1e-9 {
				t.Errorf("%v: the chance of %v is off by %v", sample, v, off)
			}
		}
	}
}

// An interval must have the truth in it about as often as it says: of ratios that skewed launches have, and of means
// over cells.
func TestIntervalsOfRatiosCoverTheTruth(t *testing.T) {
	const trials = 600
	r := rand.New(rand.NewPCG(3, 1))
	sample := func(n int, middle float64) []float64 { // a long tail to the right, with that median
		out := make([]float64, n)
		for i := range out {
			out[i] = middle * (1 + 0.1*(r.ExpFloat64()-math.Ln2))
		}
		return out
	}
	in := func(i *Interval, truth float64) float64 {
		if i.Lo <= truth && truth <= i.Hi {
			return 1. / trials
		}
		return 0
	}
	for _, n := range [][2]int{{6, 6}, {10, 10}, {7, 20}} {
		one, change, mean := 0.0, 0.0, 0.0
		for range trials {
			x, y := NewSides(sample(n[0], 25), sample(n[1], 100)), NewSides(sample(n[0], 30), sample(n[1], 30))
			one += in(ratioOnly(x), 0.25)
			change += in(x.Change(), 75)
			mean += in(meanOnly(x, y), 0.5)
		}
		t.Logf("%v launches: of 95%% intervals %.1f%% of ratios, %.1f%% of changes and %.1f%% of means have the truth in them", n, 100*one, 100*change, 100*mean)
		for _, c := range []float64{one, change, mean} {
			if c < 0.925 || c > 0.995 {
				t.Errorf("%v launches: %.1f%%, %.1f%%, %.1f%% of intervals have the truth in them", n, 100*one,
					100*change, 100*mean)
				break
			}
		}
	}
}

func meanOnly(of ...Sides) *Interval {
	ratio, _ := MeanRatio(of)
	return ratio
}

func ratioOnly(s Sides) *Interval {
	ratio, _ := s.Ratio()
	return ratio
}

func TestIntervalsAreAlwaysTheSame(t *testing.T) {
	a, b := []float64{3, 4, 5, 3.5, 4.4, 6}, []float64{9, 8, 11, 9.5, 7, 10, 8.8}
	x := NewSides(a, b)
	slices.Reverse(a)
	y := NewSides(a, b)
	if *ratioOnly(x) != *ratioOnly(y) || *x.Change() != *y.Change() || *meanOnly(x, x) != *meanOnly(y, y) {
		t.Errorf("%v and %v", ratioOnly(x), ratioOnly(y))
	}
	if few := NewSides(a[:5], b); ratioOnly(few) != nil || few.Change() != nil || meanOnly(x, few) != nil {
		t.Error("five launches have an interval")
	}
	if same := NewSides([]float64{2, 2, 2, 2, 2, 2}, []float64{4, 4, 4, 4, 4, 4}); ratioOnly(same).Lo != 0.5 ||
		ratioOnly(same).Hi != 0.5 {
		t.Errorf("of constant values: %+v", ratioOnly(same))
	}
}

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
