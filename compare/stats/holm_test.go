package stats

import (
	"math"
	"testing"
)

func TestHolmWeighs(t *testing.T) {
	tests := []Test{{P: 0.01, Weight: 3, Same: "a"}, {P: 0.01, Weight: 1, Same: "b"}, {P: 0.04, Weight: 1, Same: "c"},
		{P: 0.01, Weight: 1, Same: "a"}}
	got := Holm(tests, func(t Test) float64 { return t.P })
	want := []float64{0.01 * 5 / 3, 0.02, 0.04, 0.01 * 5 / 3} // 5 in all, then 2, then 1
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if n := Distinct(tests); n != 3 {
		t.Errorf("%d tests are told apart", n)
	}
}

// A time and its inverse are one question in every pair of cells; a figure that is better in one pair and worse in the
// other is another.
func TestOrdersOverSeveralPairs(t *testing.T) {
	better, worse := NewSides([]float64{1, 2}, []float64{3, 4}), NewSides([]float64{4, 3}, []float64{2, 1})
	if OrderOf(better, better) != OrderOf(worse, worse) {
		t.Error("turned round in all pairs it is another question")
	}
	if OrderOf(better, better) == OrderOf(better, worse) || OrderOf(better, worse) != OrderOf(worse, better) {
		t.Error("turned round in one pair of two it is the same question")
	}
}
