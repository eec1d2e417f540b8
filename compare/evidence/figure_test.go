package evidence

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/figure"
)

func figureOf(values ...float64) Figure {
	f := Figure{Name: figure.TTFT, Unit: "ms"}
	for i, v := range values {
		f.Add(i+1, v)
	}
	f.Summarise()
	f.watch()
	return f
}

func TestWarningsBesideAFigure(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		said   []string
	}{
		"quiet":               {[]float64{100, 101, 99, 100.5, 99.5, 100.2, 99.8}, nil},
		"rising":              {[]float64{100, 101, 102, 103, 104, 105, 106}, []string{"drifts"}},
		"rising by a trifle":  {[]float64{100, 100.01, 100.02, 100.03, 100.04, 100.05, 100.06}, nil},
		"falling with ties":   {[]float64{9, 9, 8, 8, 7, 7, 6, 6, 5, 5}, []string{"drifts", "varies"}},
		"one far out":         {[]float64{100, 101, 99, 150, 100.5, 99.5, 100.2}, []string{"far"}},
		"one, others equal":   {[]float64{64, 64, 64, 64, 64, 64, 41}, []string{"far"}},
		"far out by a trifle": {[]float64{64, 64, 64, 64, 64, 64, 64.01}, nil},
		"varying":             {[]float64{100, 140, 90, 160, 80, 120, 110}, []string{"varies"}},
		"few":                 {[]float64{1, 2, 3, 4, 500}, nil},
		"constant":            {[]float64{5, 5, 5, 5, 5, 5, 5}, nil},
		"nothing":             {[]float64{0, 0, 0, 0, 0, 0}, nil},
	} {
		var said []string
		for _, w := range figureOf(c.values...).Warnings {
			for _, word := range []string{"drifts", "far", "varies"} {
				if strings.Contains(w.Text, word+" ") {
					said = append(said, word)
				}
			}
		}
		if !slices.Equal(said, c.said) {
			t.Errorf("%s: %q, want %q", name, said, c.said)
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
