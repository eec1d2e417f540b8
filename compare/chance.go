package compare

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"golang.org/x/perf/benchmath"
)

// test is what can be said of whether two samples differ by more than chance.
type test struct {
	p      float64
	least  float64 // the smallest p that samples of these sizes can have
	n1, n2 int
	weight float64 // in its family
	same   string  // tests of one family with the same words here order the same launches in the same way: they are one test
}

// exactly is up to how many values permutations are counted; of more the distribution is near enough to its limit.
const exactly = 60

// chance is Mann and Whitney's test, two-sided.
func chance(x, y []float64) test {
	t := test{n1: len(x), n2: len(y)}
	t.least = min(1, 2/math.Exp(logChoose(t.n1+t.n2, t.n1)))
	if t.n1+t.n2 <= exactly {
		t.p = permuted(x, y)
		return t
	}
	if len(x) > len(y) {
		x, y = y, x // the library's distribution is wrong the other way round where there are ties
	}
	t.p = benchmath.AssumeNothing.Compare(sampleOf(x), sampleOf(y)).P
	return t
}

func sampleOf(values []float64) *benchmath.Sample {
	return benchmath.NewSample(values, &benchmath.DefaultThresholds)
}

// permuted is the share of all ways to draw len(x) of the values whose sum of ranks lies as far out as that of x, on the side
// where fewer do, and as many again for the other side. Ranks are doubled, so that those of ties are whole.
func permuted(x, y []float64) float64 {
	ways, seen := rankSums(x, y)
	return outlying(ways, seen)
}

// rankSums counts the ways to draw len(x) of the values, by their sum of ranks, and gives the sum of x.
func rankSums(x, y []float64) (ways []float64, seen int) {
	ranks := doubledRanks(x, y)
	n, highest := len(x), 0
	for i, r := range ranks {
		highest += r
		if i < n {
			seen += r
		}
	}
	by := make([][]float64, n+1) // how many are drawn
	for k := range by {
		by[k] = make([]float64, highest+1)
	}
	by[0][0] = 1
	sofar := 0
	for i, r := range ranks {
		sofar += r
		for k := min(n, i+1); k > 0; k-- {
			for sum := sofar; sum >= r; sum-- {
				by[k][sum] += by[k-1][sum-r]
			}
		}
	}
	return by[n], seen
}

func outlying(ways []float64, seen int) float64 {
	all, below, above := 0.0, 0.0, 0.0
	for sum, w := range ways {
		all += w
		if sum <= seen {
			below += w
		}
		if sum >= seen {
			above += w
		}
	}
	return min(1, 2*min(below, above)/all)
}

// overCells is Mann and Whitney's test over several cells at once: values are drawn within each cell alone, and the sums of ranks added.
// A cell's level cancels out, a shift that all have in common adds up.
func overCells(cells []sides) test {
	t, n := test{}, 0
	logLeast := math.Log(2)
	for _, c := range cells {
		t.n1, t.n2 = t.n1+len(c.a), t.n2+len(c.b)
		logLeast -= logChoose(len(c.a)+len(c.b), len(c.a))
	}
	n = t.n1 + t.n2
	t.least = min(1, math.Exp(logLeast))
	if n > 4*exactly {
		t.p = nearly(cells)
		return t
	}
	ways, seen := []float64{1}, 0
	for _, c := range cells {
		more, sum := rankSums(c.a, c.b)
		next := make([]float64, len(ways)+len(more)-1)
		for i, w := range ways {
			if w == 0 {
				continue
			}
			for j, m := range more {
				next[i+j] += w * m
			}
		}
		ways, seen = next, seen+sum
	}
	t.p = outlying(ways, seen)
	return t
}

// nearly is the same of many values, by the bell curve that sums of ranks come to.
func nearly(cells []sides) float64 {
	off, variance := 0.0, 0.0
	for _, c := range cells {
		ranks := doubledRanks(c.a, c.b)
		n, n1 := float64(len(ranks)), float64(len(c.a))
		mean, squares := 0.0, 0.0
		for _, r := range ranks {
			mean += float64(r) / n
		}
		for i, r := range ranks {
			d := float64(r) - mean
			squares += d * d
			if i < len(c.a) {
				off += d
			}
		}
		if n > 1 {
			variance += n1 * (n - n1) / (n * (n - 1)) * squares
		}
	}
	if variance == 0 {
		return 1
	}
	return math.Erfc(max(0, math.Abs(off)-1) / math.Sqrt(2*variance))
}

// order writes down how the values of both sides are ranked, in the same words for the reverse: a time and its inverse are one question.
func order(x, y []float64) string {
	ranks := doubledRanks(x, y)
	reversed := make([]int, len(ranks))
	for i, r := range ranks {
		reversed[i] = 2*(len(ranks)+1) - r
	}
	if slices.Compare(reversed, ranks) < 0 {
		ranks = reversed
	}
	return fmt.Sprint(len(x), ranks)
}

// doubledRanks are those of x, then of y, among all.
func doubledRanks(x, y []float64) []int {
	values := append(append([]float64{}, x...), y...)
	sorted := append([]float64{}, values...)
	sort.Float64s(sorted)
	ranks := make([]int, len(values))
	for i, v := range values {
		first := sort.SearchFloat64s(sorted, v)
		last := first
		for last+1 < len(sorted) && sorted[last+1] == v {
			last++
		}
		ranks[i] = first + last + 2
	}
	return ranks
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
