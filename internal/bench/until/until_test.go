package until

import (
	"math"
	"math/rand/v2"
	"testing"

	"llmparity/internal/bench/plan"
	"llmparity/internal/stats"
)

// repeat draws values until the rule stops.
func repeat(t *testing.T, p plan.Plan, draw func() float64) *Rule {
	t.Helper()
	l := New(p)
	for n := 1; n <= p.MostRepetitions(); n++ {
		v := draw()
		if l.Keep(v, l.Decide(v, n)); l.Stopped() {
			return l
		}
	}
	t.Fatalf("not stopped after %d repetitions", p.MostRepetitions())
	return nil
}

// Stopping early must not raise the error rate. The values are distributed like real ones: skewed, with outliers, with
// two modes.
func TestUntilCIIntervalsHold(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draws := map[string]struct {
		draw   func() float64
		median float64
	}{
		"normal": {func() float64 { return 100 + 6*random.NormFloat64() }, 100},
		"skewed": {func() float64 { return 100 * math.Exp(0.1*random.NormFloat64()) }, 100},
		"outliers": {func() float64 {
			if random.Float64() < 0.1 {
				return 60 + 10*random.Float64()
			}
			return 100 + 3*random.NormFloat64()
		}, 0},
		"two modes": {func() float64 {
			if random.Float64() < 0.4 {
				return 90 + random.NormFloat64()
			}
			return 100 + random.NormFloat64()
		}, 0},
	}
	for name, d := range draws {
		truth := d.median
		if truth == 0 { // unknown: estimate it
			all := make([]float64, 200_000)
			for i := range all {
				all[i] = d.draw()
			}
			truth = stats.Median(all)
		}
		for _, p := range []plan.Plan{
			{Repetitions: 6, UntilCI: &plan.UntilCI{Width: 5, Most: 60}},
			{Repetitions: 3, UntilCI: &plan.UntilCI{Width: 3, Most: 30}},
			{Repetitions: 6, UntilCI: &plan.UntilCI{Width: 1, Most: 20}},
		} {
			const cells = 2000
			missed, early := 0, 0
			for range cells {
				l := repeat(t, p, d.draw)
				if l.stop.Low == nil {
					t.Fatalf("%s: no interval of %d values at the last of the looks at %v", name, len(l.values), l.at)
				}
				if truth < *l.stop.Low || truth > *l.stop.High {
					missed++
				}
				if len(l.values) < p.UntilCI.Most {
					early++
				}
			}
			// At an error rate of 5%, 2,000 cells miss more than 129 times with a probability of 0.1%.
			if missed > 129 {
				t.Errorf("%s, %s of %d: %d of %d intervals miss the median (%d stopped early)", name, p.UntilCI.Width,
					p.UntilCI.Most, missed, cells, early)
			}
			t.Logf("%s, %s of %d, looks at %v: %.1f%% missed, %.0f%% stopped early", name, p.UntilCI.Width,
				p.UntilCI.Most, New(p).at,
				100*float64(missed)/cells, 100*float64(early)/cells)
		}
	}
}

func TestUntilCIStopsWithoutFigure(t *testing.T) {
	l := New(plan.Plan{Repetitions: 4, UntilCI: &plan.UntilCI{Width: 5, Most: 40}})
	for n := 1; n <= 4; n++ {
		if l.Keep(math.NaN(), l.Decide(math.NaN(), n)); l.Stopped() != (n == 4) {
			t.Errorf("after %d of 4 repetitions: stopped %v", n, l.Stopped())
		}
	}
}
