package thin_test

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"llmparity/internal/thin"
)

type point struct{ x, y float64 }

func at(p point) (float64, float64) { return p.x, p.y }

// series makes a random series with equal x, x that goes backwards, gaps, plateaus and spikes.
func series(r *rand.Rand) []point {
	out := make([]point, r.IntN(3000))
	x, y := 100*r.NormFloat64(), 0.0
	backwards, gaps, flat := r.IntN(4) == 0, r.IntN(2) == 0, r.IntN(3) == 0
	for i := range out {
		switch {
		case backwards && r.IntN(20) == 0:
			x -= 10 * r.Float64()
		case r.IntN(5) > 0:
			x += r.ExpFloat64()
		}
		switch {
		case gaps && r.IntN(30) == 0:
			y = math.NaN()
		case r.IntN(200) == 0:
			y = 1e9 * r.NormFloat64()
		case flat && r.IntN(3) > 0 && !math.IsNaN(y):
		default:
			y = 100 * r.NormFloat64()
		}
		out[i] = point{x, y}
	}
	return out
}

func TestPeaksSurvive(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		points, n := series(r), r.IntN(300)
		check(t, points, n)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestOddX(t *testing.T) {
	same := []point{{1, 5}, {1, 9}, {1, 2}, {1, 3}, {1, 4}, {1, 4}}
	check(t, same, 4)
	nan, inf := math.NaN(), math.Inf(1)
	check(t, []point{{nan, 1}, {nan, 7}, {0, 2}, {nan, 3}, {4, nan}, {5, 5}}, 4)
	check(t, []point{{0, 1}, {inf, 7}, {-inf, 2}, {3, 3}, {4, nan}, {5, 5}}, 5)
	check(t, []point{{-math.MaxFloat64, 1}, {0, 7}, {0, 2}, {3, 3}, {4, nan}, {math.MaxFloat64, 5}}, 5)
	check(t, []point{{0, nan}, {1, nan}, {2, nan}, {3, nan}, {4, nan}, {5, nan}}, 4)
}

// At the end of the axis the edge of a stretch may be rounded to the very x that begins it.
func TestManyPointsAtLastX(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	for range 3000 {
		last, points := r.ExpFloat64()*math.Pow(10, float64(r.IntN(40)-20)), []point{}
		for range 5 {
			points = append(points, point{last * r.Float64(), r.Float64()})
		}
		slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
		for range 60 {
			points = append(points, point{last, r.Float64()})
		}
		check(t, points, 12+r.IntN(40))
		if t.Failed() {
			t.Fatal(points[:6])
		}
	}
}

func FuzzPoints(f *testing.F) {
	f.Add(make([]byte, 160), 4)
	f.Add([]byte("any bytes are numbers, of which some are none, and some are far away"), 5)
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		var points []point
		for ; len(text) >= 16; text = text[16:] {
			points = append(points, point{math.Float64frombits(binary.LittleEndian.Uint64(text)),
				math.Float64frombits(binary.LittleEndian.Uint64(text[8:]))})
		}
		check(t, points, n)
	})
}

// check compares input and output by the indices of the points.
func check(t *testing.T, points []point, n int) {
	t.Helper()
	numbers := make([]int, len(points))
	for i := range numbers {
		numbers[i] = i
	}
	kept := thin.Points(numbers, n, func(i int) (float64, float64) { return at(points[i]) })
	if len(points) <= n || n < 4 {
		if len(kept) != len(points) {
			t.Errorf("%d points became %d, though %d may be kept", len(points), len(kept), n)
		}
		return
	}
	if kept[0] != 0 || kept[len(kept)-1] != len(points)-1 {
		t.Errorf("first kept point %d, last %d of %d", kept[0], kept[len(kept)-1], len(points))
	}
	gaps := 0
	for k, i := range kept {
		if math.IsNaN(points[i].y) {
			gaps++
		}
		if k > 0 && i <= kept[k-1] {
			t.Errorf("point %d comes after %d", i, kept[k-1])
		}
	}
	if len(kept)-gaps > n+4 {
		t.Errorf("%d points became %d, %d may be kept", len(points), len(kept)-gaps, n)
	}
	checkRange(t, points, kept, 0, len(points), "of all")
	checkStretches(t, points, kept, n/3)
	checkGaps(t, points, kept)
}

// checkStretches cuts x into equal parts on its own and checks the range in each, if x never goes backwards.
func checkStretches(t *testing.T, points []point, kept []int, stretches int) {
	t.Helper()
	first, last := points[0].x, points[len(points)-1].x
	width := last/float64(stretches) - first/float64(stretches)
	for i, p := range points {
		if math.IsNaN(p.x) || math.IsInf(p.x, 0) || i > 0 && p.x < points[i-1].x {
			return // stretches are not contiguous
		}
	}
	if !(width > 0) || math.IsInf(width, 0) {
		return
	}
	part := func(i int) float64 { return math.Floor((points[i].x - first) / width) }
	for begin := 0; begin < len(points); {
		end := begin + 1
		for end < len(points) && part(end) == part(begin) {
			end++
		}
		checkRange(t, points, kept, begin, end, "of a stretch")
		begin = end
	}
}

// checkRange checks that the lowest and highest y between begin and end are kept.
func checkRange(t *testing.T, points []point, kept []int, begin, end int, what string) {
	t.Helper()
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range points[begin:end] {
		if !math.IsNaN(p.y) {
			lo, hi = min(lo, p.y), max(hi, p.y)
		}
	}
	keptLo, keptHi := math.Inf(1), math.Inf(-1)
	for _, i := range kept {
		if y := points[i].y; i >= begin && i < end && !math.IsNaN(y) {
			keptLo, keptHi = min(keptLo, y), max(keptHi, y)
		}
	}
	if lo != keptLo || hi != keptHi {
		t.Errorf("the range %s, points %d to %d, is %v to %v, and %v to %v is kept", what, begin, end, lo, hi, keptLo,
			keptHi)
	}
}

// checkGaps checks that two kept points without a kept gap between them had no gap between them.
func checkGaps(t *testing.T, points []point, kept []int) {
	t.Helper()
	for k := 1; k < len(kept); k++ {
		if math.IsNaN(points[kept[k-1]].y) || math.IsNaN(points[kept[k]].y) {
			continue // it is one
		}
		for i := kept[k-1] + 1; i < kept[k]; i++ {
			if math.IsNaN(points[i].y) {
				t.Errorf("line across the gap at %d, from %d to %d", i, kept[k-1], kept[k])
				return
			}
		}
	}
}

func BenchmarkPoints(b *testing.B) {
	points := make([]point, 1_000_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range points {
		points[i] = point{float64(i), r.Float64()}
	}
	for b.Loop() {
		thin.Points(points, 240, at)
	}
}
