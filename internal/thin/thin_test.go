package thin_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"llmparity/internal/thin"
)

// series makes random values with gaps, plateaus and spikes.
func series(r *rand.Rand) []float64 {
	out := make([]float64, r.IntN(3000))
	y, gaps, flat := 0.0, r.IntN(2) == 0, r.IntN(3) == 0
	for i := range out {
		switch {
		case gaps && r.IntN(30) == 0:
			y = math.NaN()
		case r.IntN(200) == 0:
			y = 1e9 * r.NormFloat64()
		case flat && r.IntN(3) > 0 && !math.IsNaN(y):
		default:
			y = 100 * r.NormFloat64()
		}
		out[i] = y
	}
	return out
}

func TestPeaksAndGapsSurvive(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, values := range [][]float64{{5, 9, 2, 3, 4, 4}, {1, 7, 2, 3, nan, 5}, {-inf, 7, inf, 3, nan, 5},
		{nan, nan, nan, nan, nan, nan}} {
		check(t, values, 4)
	}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		check(t, series(r), r.IntN(300))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// check compares input and output by the indices of the points.
func check(t *testing.T, values []float64, n int) {
	t.Helper()
	numbers := make([]int, len(values))
	for i := range numbers {
		numbers[i] = i
	}
	kept := thin.Points(numbers, n, func(i int) float64 { return values[i] })
	if len(values) <= n || n < 4 {
		if len(kept) != len(values) {
			t.Errorf("%d points became %d, though %d may be kept", len(values), len(kept), n)
		}
		return
	}
	if kept[0] != 0 || kept[len(kept)-1] != len(values)-1 {
		t.Errorf("first kept point %d, last %d of %d", kept[0], kept[len(kept)-1], len(values))
	}
	gaps := 0
	var remains []float64 // by index; what was not kept is a gap
	for range values {
		remains = append(remains, math.NaN())
	}
	for k, i := range kept {
		remains[i] = values[i]
		if math.IsNaN(values[i]) {
			gaps++
		}
		if k == 0 {
			continue
		}
		before := kept[k-1]
		if i <= before {
			t.Errorf("point %d comes after %d", i, before)
		}
		for between := before + 1; between < i; between++ {
			if math.IsNaN(values[between]) && !math.IsNaN(values[before]) && !math.IsNaN(values[i]) {
				t.Errorf("a line from %d to %d across the gap at %d", before, i, between)
			}
		}
	}
	if len(kept)-gaps > n+4 {
		t.Errorf("%d points became %d, %d may be kept", len(values), len(kept)-gaps, n)
	}
	each := (len(values) + n/3 - 1) / (n / 3)
	for begin := 0; begin < len(values); begin += each {
		end := min(begin+each, len(values))
		lo, hi := extent(values[begin:end])
		if keptLo, keptHi := extent(remains[begin:end]); lo != keptLo || hi != keptHi {
			t.Errorf("the range of points %d to %d is %v to %v, and %v to %v is kept", begin, end, lo, hi, keptLo, keptHi)
		}
	}
}

// extent is the lowest and the highest value that is no gap.
func extent(values []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	return lo, hi
}
