package stats

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/mathx"
)

// Pairs compare values that were measured one after the other, so that both saw the same state of the machine: the
// logarithm of each pair's ratio, of the second to the first. What drifts over many launches changes both.
type Pairs []float64

// NewPairs pairs values of two sides in their order; nil unless there are enough and all are above 0.
func NewPairs(a, b []float64) Pairs {
	if len(a) != len(b) || len(a) < MinRuns {
		return nil
	}
	out := make(Pairs, len(a))
	for i := range a {
		if a[i] <= 0 || b[i] <= 0 {
			return nil
		}
		out[i] = math.Log(b[i] / a[i])
	}
	return out
}

// Chance is Wilcoxon's two-sided signed-rank test of the pairs against a change, which is a share: exact, with ties.
// Sides that are alike are as often first as second in order, so it needs no distribution.
func (p Pairs) Chance(change float64) Test {
	n := len(p)
	t := Test{Left: n, Right: n, Least: min(1, 2*math.Pow(2, -float64(n)))}
	by, size := make([]float64, n), make([]float64, n)
	for i, d := range p {
		by[i] = d - math.Log1p(change)
		size[i] = math.Abs(by[i])
	}
	ranks, seen := doubledRanks(size, nil), 0
	for i, r := range ranks {
		if by[i] > 0 {
			seen += r
		}
	}
	t.P = twoSided(waysToSign(ranks), seen)
	return t
}

// waysToSign counts the ways to choose signs, by the sum of the ranks with a plus.
func waysToSign(ranks []int) []float64 {
	sum := 0
	for _, r := range ranks {
		sum += r
	}
	ways, sofar := make([]float64, sum+1), 0
	ways[0] = 1
	for _, r := range ranks {
		sofar += r
		for at := sofar; at >= r; at-- {
			ways[at] += ways[at-r]
		}
	}
	return ways
}

// Percent is the middle of the means of each two pairs, as a change in percent. Hodges and Lehmann's estimate is as
// robust as a median, and belongs to the test.
func (p Pairs) Percent() float64 {
	means := p.means()
	return percentOf((means[(len(means)-1)/2] + means[len(means)/2]) / 2)
}

// Shift is the interval of the change in percent that the test does not reject; nil if there are too few pairs.
func (p Pairs) Shift(level float64) *Interval {
	ranks := make([]int, len(p))
	for i := range ranks {
		ranks[i] = i + 1
	}
	allowed, sum, k := (1-level)/2*math.Pow(2, float64(len(p)))*(1+1e-9), 0.0, 0
	for at, w := range waysToSign(ranks) {
		if sum += w; sum > allowed {
			k = at
			break
		}
	}
	if k == 0 {
		return nil
	}
	means := p.means()
	return &Interval{Lo: percentOf(means[k-1]), Hi: percentOf(means[len(means)-k]), Confidence: level}
}

// means are the sorted means of each two pairs, and of each pair with itself.
func (p Pairs) means() []float64 {
	out := make([]float64, 0, int(mathx.Choose(len(p)+1, 2)))
	for i := range p {
		for j := i; j < len(p); j++ {
			out = append(out, (p[i]+p[j])/2)
		}
	}
	slices.Sort(out)
	return out
}

func percentOf(logarithm float64) float64 { return Round(100*math.Expm1(logarithm), 6) }
