package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"llmparity/internal/stats"
)

// The smallest difference alone has a minus, so of the 128 ways to choose signs, the sums 0 and 1 of ranks with a minus
// are as rare.
func TestPairsAreWilcoxons(t *testing.T) {
	a := []float64{10, 10, 10, 10, 10, 10, 10}
	b := []float64{11, 12, 13, 9.5, 14, 15, 16}
	p := stats.NewPairs(a, b)
	if got := p.Chance(0).P; math.Abs(got-2*2/128.0) > 1e-12 {
		t.Errorf("p = %g", got)
	}
	if got := p.Chance(0).Least; got != 2/128.0 {
		t.Errorf("the smallest p is %g", got)
	}
	if got := p.Percent(); got < 28 || got > 30 {
		t.Errorf("change %g%%", got)
	}
	if i := p.Shift(0.9); i == nil || i.Lo >= p.Percent() || i.Hi <= p.Percent() {
		t.Errorf("interval %+v", i)
	}
	if i := p.Shift(0.99); i != nil {
		t.Errorf("seven pairs have no 99%% interval: %+v", i)
	}
	if stats.NewPairs(a, append(b[:6:6], 0)) != nil || stats.NewPairs(a[:5], b[:5]) != nil ||
		stats.NewPairs(a, b[:6]) != nil {
		t.Error("values at 0, too few of them, or of other numbers are pairs")
	}
}

// What drifts hides a change from the test of two samples, and not from that of pairs. Equal sides are called different
// at most as often as alpha says.
func TestPairsSeeThroughDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	count := func(change float64) (paired, unpaired int) {
		for range 2000 {
			a, b := make([]float64, 10), make([]float64, 10)
			for i := range a {
				level := 10 * math.Exp(0.3*math.Sin(float64(i)))
				a[i], b[i] = level*math.Exp(0.05*r.NormFloat64()), level*(1+change)*math.Exp(0.05*r.NormFloat64())
			}
			if stats.NewPairs(a, b).Chance(0).P <= stats.Alpha {
				paired++
			}
			if stats.NewSides(a, b).Chance().P <= stats.Alpha {
				unpaired++
			}
		}
		return paired, unpaired
	}
	if paired, _ := count(0); paired > 125 { // 5% of 2,000, and three standard deviations
		t.Errorf("%d of 2000 equal pairs differ", paired)
	}
	if paired, unpaired := count(0.2); paired < 1990 || unpaired > 500 {
		t.Errorf("20%% is seen %d and %d times of 2000", paired, unpaired)
	}
}
