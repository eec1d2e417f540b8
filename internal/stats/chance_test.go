package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// brute counts the permutations one by one, by pairs and not by ranks.
func brute(x, y []float64) float64 {
	all := append(append([]float64{}, x...), y...)
	pairs := func(drawn uint) float64 {
		u := 0.0
		for i, a := range all {
			for j, b := range all {
				if drawn>>i&1 == 1 && drawn>>j&1 == 0 {
					switch {
					case a > b:
						u++
					case a == b:
						u += 0.5
					}
				}
			}
		}
		return u
	}
	seen, ways, below, above := pairs(1<<len(x)-1), 0.0, 0.0, 0.0
	for drawn := range uint(1) << len(all) {
		if bits.OnesCount(drawn) == len(x) {
			ways++
			if u := pairs(drawn); u <= seen {
				below++
				if u == seen {
					above++
				}
			} else {
				above++
			}
		}
	}
	return min(1, 2*min(below, above)/ways)
}

func chance(x, y []float64) Test { return NewSides(x, y).Chance() }

func TestChanceCountsAllPermutations(t *testing.T) {
	known := map[float64][2][]float64{ // p
		0.2:    {{2, 2, 3}, {1, 1.5}},
		0.1:    {{-1, -1, -1}, {1, 1, 1}},
		1:      {{4, 4, 4}, {4, 4, 4, 4}},
		2. / 7: {{1, 2, 2, 9, 9, 9}, {0}},
	}
	for p, s := range known {
		if got := chance(s[0], s[1]); math.Abs(got.P-p) > 1e-9 {
			t.Errorf("%v against %v: p = %v, want %v", s[0], s[1], got.P, p)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		x, y := make([]float64, 1+r.IntN(5)), make([]float64, 1+r.IntN(5))
		for _, s := range [][]float64{x, y} {
			for i := range s {
				s[i] = float64(r.IntN(4)) // many ties
			}
		}
		want, got, swapped := brute(x, y), chance(x, y), chance(y, x)
		if math.Abs(got.P-want) > 1e-9 || math.Abs(swapped.P-got.P) > 1e-12 || got.P <= 0 {
			t.Errorf("%v against %v: p = %v, swapped %v, counted one by one %v", x, y, got.P, swapped.P, want)
		}
	}
}

func TestChanceOfManyValues(t *testing.T) {
	var x, y []float64
	for i := range 40 {
		x, y = append(x, float64(i%7)), append(y, float64(i%5+1))
	}
	ways, seen := NewSides(x, y).rankSums()
	exact := twoSided(ways, seen)
	for _, got := range []Test{chance(x, y), chance(y, x), chance(x, y[:25])} {
		if got.P <= 0 || got.P > 1 || got.Least > Alpha {
			t.Errorf("%+v", got)
		}
	}
	if got := chance(x, y); math.Abs(got.P-exact) > 0.02 {
		t.Errorf("p = %v, all permutations give %v", got.P, exact)
	}
}

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

// By Benjamini and Hochberg, p is divided by its rank, weighs, and never becomes smaller than it was.
func TestHochbergWeighs(t *testing.T) {
	tests := []Test{{P: 0.01, Weight: 3, Same: "a"}, {P: 0.01, Weight: 1, Same: "b"}, {P: 0.04, Weight: 1, Same: "c"},
		{P: 0.01, Weight: 1, Same: "a"}}
	got := ByHochberg.Correct(tests, func(t Test) float64 { return t.P })
	want := []float64{0.01 * 5 / 3, 0.01 * 5 / 2, 0.04 * 5 / 3, 0.01 * 5 / 3}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("%v, want %v", got, want)
		}
	}
	heavy := []Test{{P: 0.05, Weight: 8, Same: "a"}, {P: 0.0001, Weight: 1, Same: "b"}}
	// 0.05 / 8 * 9 / 2 is less
	if got := ByHochberg.Correct(heavy, func(t Test) float64 { return t.P }); got[0] != 0.05 {
		t.Errorf("%v, want 0.05 at first", got)
	}
	if CorrectionOf(MostByHolm) != ByHolm || CorrectionOf(MostByHolm+1) != ByHochberg {
		t.Error("the correction does not depend on the number of pairs")
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
