package chart

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// An engine has its colour whatever else is in the report; no two that fit share one.
func TestEnginesKeepTheirColours(t *testing.T) {
	of := func(engines ...string) map[string]int {
		res := &compare.Result{}
		for _, e := range engines {
			res.Cells = append(res.Cells, &compare.Cell{Setup: evidence.Setup{Spec: record.Cell{Engine: e}}})
		}
		own := map[string]int{"webllm": 1, "llamacpp": 2, "ollama": 3, "hf": 5, "exec:b": engineColours + 1}
		return (&View{Res: res, Own: own}).engineColour()
	}
	if a, b := of("llamacpp", "webllm"),
		of("exec:mine", "webllm", "ollama", "llamacpp"); a["llamacpp"] != b["llamacpp"] || a["webllm"] != b["webllm"] {
		t.Errorf("%v, and %v beside others", a, b)
	}
	seen := map[int]string{}
	for e, c := range of("exec:a", "hf", "wllama", "webllm", "exec:b", "llamacpp") {
		if other, taken := seen[c]; taken || c < 1 || c > engineColours {
			t.Errorf("%s and %s have colour %d", e, other, c)
		}
		seen[c] = e
	}
}

// The first and the last point of a long series, and the range of each stretch, are drawn.
func TestPeaksSurvive(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var points []xy
		y, flat := 0.0, r.IntN(3) == 0
		for i := range 1 + r.IntN(3000) {
			switch {
			case r.IntN(200) == 0:
				y = 1e9 * r.NormFloat64()
			case !flat || r.IntN(3) == 0:
				y = 100 * r.NormFloat64()
			}
			points = append(points, xy{float64(i), y})
		}
		n := 3 + r.IntN(300)
		kept := thinned(points, n)
		if len(kept) > n+1 || kept[0] != points[0] || kept[len(kept)-1] != points[len(points)-1] ||
			!slices.IsSortedFunc(kept, func(a, b xy) int { return cmp.Compare(a.x, b.x) }) {
			t.Fatalf("seed %d: %d points became %d: %v", seed, len(points), len(kept), kept)
		}
		each := (len(points) + n/3 - 1) / (n / 3)
		extent := func(all []xy, begin int) (lo, hi float64) {
			lo, hi = math.Inf(1), math.Inf(-1)
			for _, p := range all {
				if int(p.x)/each == begin/each {
					lo, hi = min(lo, p.y), max(hi, p.y)
				}
			}
			return lo, hi
		}
		for begin := 0; begin < len(points); begin += each {
			lo, hi := extent(points, begin)
			if keptLo, keptHi := extent(kept, begin); lo != keptLo || hi != keptHi {
				t.Fatalf("seed %d: points from %d on are within %v and %v, those kept within %v and %v", seed, begin,
					lo, hi, keptLo, keptHi)
			}
		}
	}
}
