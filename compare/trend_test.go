package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

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

func TestADriftsChanceIsThatOfAllOrders(t *testing.T) {
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
		if _, p := drift(values); math.Abs(p-out/float64(len(all))) > 1e-9 {
			t.Errorf("%v: p = %v, of all orders %v", values, p, out/float64(len(all)))
		}
	}
}

func figureOf(values ...float64) Figure {
	f := Figure{Name: TTFT, Unit: "ms"}
	for i, v := range values {
		f.add(i+1, v)
	}
	f.summarise()
	f.watch("ms")
	return f
}

func TestWarningsBesideAFigure(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		codes  []string
	}{
		"quiet":               {[]float64{100, 101, 99, 100.5, 99.5, 100.2, 99.8}, nil},
		"rising":              {[]float64{100, 101, 102, 103, 104, 105, 106}, []string{Trend}},
		"rising by a trifle":  {[]float64{100, 100.01, 100.02, 100.03, 100.04, 100.05, 100.06}, nil},
		"falling with ties":   {[]float64{9, 9, 8, 8, 7, 7, 6, 6, 5, 5}, []string{Trend, NoisyFigure}},
		"one far out":         {[]float64{100, 101, 99, 150, 100.5, 99.5, 100.2}, []string{Outliers}},
		"one, others equal":   {[]float64{64, 64, 64, 64, 64, 64, 41}, []string{Outliers}},
		"far out by a trifle": {[]float64{64, 64, 64, 64, 64, 64, 64.01}, nil},
		"varying":             {[]float64{100, 140, 90, 160, 80, 120, 110}, []string{NoisyFigure}},
		"few":                 {[]float64{1, 2, 3, 4, 500}, nil},
		"constant":            {[]float64{5, 5, 5, 5, 5, 5, 5}, nil},
		"nothing":             {[]float64{0, 0, 0, 0, 0, 0}, nil},
	} {
		var codes []string
		for _, w := range figureOf(c.values...).Warnings {
			codes = append(codes, w.Code)
		}
		if !slices.Equal(codes, c.codes) {
			t.Errorf("%s: %q, want %q", name, codes, c.codes)
		}
	}
}

// What is only luck must seldom be warned of: ten launches that vary by 5 %, in no order.
func TestFewFalseAlarms(t *testing.T) {
	const trials = 2000
	r := rand.New(rand.NewPCG(2, 1))
	alarms := map[string]float64{}
	for range trials {
		values := make([]float64, 10)
		for i := range values {
			values[i] = 100 + 5*r.NormFloat64()
		}
		for _, w := range figureOf(values...).Warnings {
			alarms[w.Code] += 1. / trials
		}
	}
	t.Logf("%v", alarms)
	for code, share := range alarms {
		if share > 0.03 {
			t.Errorf("%s: of %.1f %% of series", code, 100*share)
		}
	}
}

func TestHolmWeighs(t *testing.T) {
	tests := []test{{p: 0.01, weight: 3, same: "a"}, {p: 0.01, weight: 1, same: "b"}, {p: 0.04, weight: 1, same: "c"},
		{p: 0.01, weight: 1, same: "a"}}
	got := holm(tests, func(t test) float64 { return t.p })
	want := []float64{0.01 * 5 / 3, 0.02, 0.04, 0.01 * 5 / 3} // 5 in all, then 2, then 1
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if n := distinct(tests); n != 3 {
		t.Errorf("%d tests are told apart", n)
	}
}

// A time and its inverse are one question in every pair of cells; a figure that is better in one pair and worse in the
// other is another.
func TestOrdersOverSeveralPairs(t *testing.T) {
	better, worse := newSides([]float64{1, 2}, []float64{3, 4}), newSides([]float64{4, 3}, []float64{2, 1})
	if orderOf(better, better) != orderOf(worse, worse) {
		t.Error("turned round in all pairs it is another question")
	}
	if orderOf(better, better) == orderOf(better, worse) || orderOf(better, worse) != orderOf(worse, better) {
		t.Error("turned round in one pair of two it is the same question")
	}
}
