package compare

import (
	"math"
	"sort"

	"golang.org/x/perf/benchmath"
)

// test is what can be said of whether two samples differ by more than chance.
type test struct {
	p      float64
	n1, n2 int
	few    bool // no two samples of these sizes could differ enough
}

// exactly is up to how many values permutations are counted; of more the distribution is near enough to its limit.
const exactly = 60

// chance is Mann and Whitney's test, two-sided.
func chance(x, y []float64) test {
	t := test{n1: len(x), n2: len(y)}
	t.few = 2/math.Exp(logChoose(t.n1+t.n2, t.n1)) > alpha*(1+1e-9)
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
	ranks := doubledRanks(x, y)
	n, highest, seen := len(x), 0, 0
	for i, r := range ranks {
		highest += r
		if i < n {
			seen += r
		}
	}
	ways := make([][]float64, n+1) // by how many are drawn, and their sum
	for k := range ways {
		ways[k] = make([]float64, highest+1)
	}
	ways[0][0] = 1
	for _, r := range ranks {
		for k := n; k > 0; k-- {
			for sum := highest; sum >= r; sum-- {
				ways[k][sum] += ways[k-1][sum-r]
			}
		}
	}
	all, below, above := 0.0, 0.0, 0.0
	for sum, w := range ways[n] {
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
