package recount

import (
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// What is to be independent must not come to share code.
func TestNothingIsSharedWithTheReport(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil || len(paths) < 4 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if strings.Contains(i.Path.Value, "llmparity") || strings.Contains(i.Path.Value, "perf/") {
				t.Errorf("%s imports %s", path, i.Path.Value)
			}
		}
	}
}

// By hand: tables of order statistics and of Mann and Whitney's test.
func TestAgainstTables(t *testing.T) {
	for n, want := range map[int][2]int{5: {0, 0}, 6: {1, 6}, 8: {1, 7}, 9: {2, 8}, 10: {2, 9}, 12: {3, 10},
		20: {6, 15}} {
		f := Figure{}
		for i := range n {
			f.Values = append(f.Values, float64(i+1))
		}
		f.conclude()
		if want[0] == 0 {
			if !math.IsNaN(f.Lo) {
				t.Errorf("of %d values: %v to %v, want none", n, f.Lo, f.Hi)
			}
			continue
		}
		if f.Lo != float64(want[0]) || f.Hi != float64(want[1]) {
			t.Errorf("of %d values: %v to %v, want %v", n, f.Lo, f.Hi, want)
		}
	}
	if p := chance([]float64{1, 2, 3}, []float64{4, 5, 6}); math.Abs(p-0.1) > 1e-12 {
		t.Errorf("three below three: p = %v, want 0.1", p)
	}
	if p := chance([]float64{1, 2, 3, 4, 5, 6}, []float64{7, 8, 9, 10, 11, 12}); math.Abs(p-2.0/924) > 1e-12 {
		t.Errorf("six below six: p = %v, want 2/924", p)
	}
	if p := chance([]float64{1, 1, 1}, []float64{1, 1, 1}); p != 1 {
		t.Errorf("all equal: p = %v, want 1", p)
	}
}

// The law of a median is that of launches drawn one by one.
func TestMediansAreThoseOfDraws(t *testing.T) {
	const times = 40_000
	random := rand.New(rand.NewPCG(20, 26))
	for _, values := range [][]float64{{3, 1, 4, 1, 5, 9}, {2, 7, 1, 8, 2, 8, 1}, {1, 2}, {5}} {
		seen := map[float64]float64{}
		drawn := make([]float64, len(values))
		for range times {
			for i := range drawn {
				drawn[i] = values[random.IntN(len(values))]
			}
			seen[middle(drawn)]++
		}
		want := map[float64]float64{}
		for _, v := range medians(values) {
			want[v.value] += v.chance
		}
		for v, p := range want {
			if off := seen[v]/times - p; math.Abs(off) > 5*math.Sqrt(p*(1-p)/times)+1e-9 {
				t.Errorf("of %v the median is %v in %v of all draws, by its law in %v", values, v, seen[v]/times, p)
			}
			delete(seen, v)
		}
		if len(seen) > 0 {
			t.Errorf("of %v there are medians that the law lacks: %v", values, seen)
		}
	}
}
