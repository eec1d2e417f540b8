package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"llmparity/internal/stats"
)

func TestApportionedPartsAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		decimals, parts, whole := random.IntN(7), make([]float64, 1+random.IntN(9)), 0.0
		for i := range parts {
			parts[i] = math.Ldexp(random.NormFloat64(), random.IntN(14))
			if random.IntN(5) == 0 {
				parts[i] = 0
			}
			whole += parts[i]
		}
		unit := math.Pow10(decimals)
		sum := 0.0
		for i, v := range stats.Apportioned(whole, parts, decimals) {
			if units := v * unit; math.Abs(units-math.Round(units)) > 1e-6 || math.Abs(v-parts[i])*unit >= 1 {
				t.Fatalf("%v became %v with %d decimals", parts[i], v, decimals)
			}
			if parts[i] == 0 && v != 0 {
				t.Fatalf("nothing became %v: %v", v, parts)
			}
			sum += v
		}
		if math.Round(sum*unit) != math.Round(whole*unit) {
			t.Fatalf("%v add up to %v, not %v, with %d decimals", parts, sum, whole, decimals)
		}
	}
}

// What does not come to the whole is not made to; an unknown part stays unknown.
func TestApportionedKeepsWhatDoesNotAddUp(t *testing.T) {
	for _, c := range []struct {
		whole       float64
		parts, want []float64
	}{
		{10, []float64{3.333, 3.333, 3.334}, []float64{3.33, 3.33, 3.34}},
		{9, []float64{3.339, 1.111}, []float64{3.34, 1.11}},
		{10, []float64{math.NaN(), 3.334, 6.666}, []float64{math.NaN(), 3.33, 6.67}},
		{math.NaN(), []float64{1.239}, []float64{1.24}},
		{0.1 + 0.2, []float64{0.1, 0.2}, []float64{0.1, 0.2}},
	} {
		for i, v := range stats.Apportioned(c.whole, c.parts, 2) {
			if v != c.want[i] && !(math.IsNaN(v) && math.IsNaN(c.want[i])) {
				t.Errorf("%v of %v: %v, want %v", c.parts, c.whole, v, c.want[i])
			}
		}
	}
}
