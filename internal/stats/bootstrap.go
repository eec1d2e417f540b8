package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/aclements/go-moremath/mathx"
)

// law is the bootstrap distribution of the median. It is exact: the chance that each of n values is the middle one of n
// draws has a closed form, so no draws and no seed are needed.
type law struct {
	values []float64 // rising
	upTo   []float64 // the chance of at most that value
}

// negligible is a chance too small to change an interval.
const negligible = 1e-12

// medianLaw is the law of a sample. The median of an even number of values lies between two of them.
func medianLaw(sample []float64) law {
	x := slices.Sorted(slices.Values(sample))
	n := len(x)
	var atoms []atom
	if n%2 == 1 {
		before := 0.0
		for i := range x {
			now := atLeast(n, n/2+1, float64(i+1)/float64(n))
			atoms = append(atoms, atom{x[i], now - before})
			before = now
		}
		return newLaw(atoms)
	}
	half := n / 2
	ways := math.Exp(mathx.Lchoose(n, half))
	share := make([]float64, n+1) // the chance that half of the draws are among the first so many
	for i := range share {
		share[i] = math.Pow(float64(i)/float64(n), float64(half))
	}
	before := 0.0
	for i := range x {
		now := atLeast(n, half, float64(i+1)/float64(n))
		same := now - before // the lower of the two in the middle is x[i]
		before = now
		if same < negligible {
			continue
		}
		for j := i + 1; j < n; j++ { // half of the draws up to i, one of them i; the rest from j on, one of them j
			apart := ways * (share[i+1] - share[i]) * (share[n-j] - share[n-j-1])
			same -= apart
			if apart > negligible {
				atoms = append(atoms, atom{x[i]/2 + x[j]/2, apart})
			}
		}
		atoms = append(atoms, atom{x[i], max(0, same)})
	}
	return newLaw(atoms)
}

type atom struct{ value, chance float64 }

func newLaw(atoms []atom) law {
	slices.SortFunc(atoms, func(a, b atom) int { return cmp.Compare(a.value, b.value) })
	var l law
	sum := 0.0
	for _, a := range atoms {
		sum += a.chance
		l.values, l.upTo = append(l.values, a.value), append(l.upTo, sum)
	}
	for i := range l.upTo {
		l.upTo[i] /= sum
	}
	return l
}

// atLeast is the chance of k or more successes in n draws, each with chance p.
func atLeast(n, k int, p float64) float64 {
	if p >= 1 {
		return 1
	}
	sum, succeeds, fails := 0.0, math.Log(p), math.Log1p(-p)
	for i := k; i <= n; i++ {
		sum += math.Exp(mathx.Lchoose(n, i) + float64(i)*succeeds + float64(n-i)*fails)
	}
	return min(1, sum)
}

func (l law) logs() law {
	out := law{values: make([]float64, len(l.values)), upTo: l.upTo}
	for i, v := range l.values {
		out.values[i] = math.Log(v)
	}
	return out
}

// drawn is the quantile at u.
func (l law) drawn(u float64) float64 {
	return l.values[min(sort.SearchFloat64s(l.upTo, u), len(l.values)-1)]
}

// less is the chance that a value of l minus a value of o is at most t, or strictly less than t.
func (l law) less(o law, t float64, strictly bool) float64 {
	sum, before := 0.0, 0.0
	at := 0 // the values of o from here on are large enough
	for i, v := range l.values {
		for at < len(o.values) && (v-o.values[at] > t || strictly && v-o.values[at] == t) {
			at++
		}
		enough := 1.0
		if at > 0 {
			enough = 1 - o.upTo[at-1]
		}
		sum += (l.upTo[i] - before) * enough
		before = l.upTo[i]
	}
	return sum
}

// beyond is the share beyond each end of an interval.
const beyond = (1 - Confidence) / 2

// difference is the percentile interval of the median of l minus that of o, with a tail on each end. Swapping l and o
// gives the same interval with its signs swapped.
func (l law) difference(o law, tail float64) (lo, hi float64) {
	least, most := l.values[0]-o.values[len(o.values)-1], l.values[len(l.values)-1]-o.values[0]
	lo = turn(least, most, func(t float64) bool { return l.less(o, t, false) >= tail })
	hi = turn(least, most, func(t float64) bool { return l.less(o, t, true) > 1-tail })
	return lo, hi
}

// turn finds the smallest value at which a condition holds that holds from there up to most.
func turn(least, most float64, holds func(float64) bool) float64 {
	if holds(least) {
		return least
	}
	for range 40 { // nearer than figures are rounded
		middle := least/2 + most/2
		if holds(middle) {
			most = middle
		} else {
			least = middle
		}
	}
	return most
}

// Sides are a figure's values by launch, on both sides of a comparison.
type Sides struct {
	A, B       []float64
	lawA, lawB law
	// a side has too few launches for an interval: draws of three values cannot show what a fourth would be
	Few      bool
	positive bool // there are values on both sides, all above zero: a ratio of their medians makes sense
	ranks    []int
}

// NewSides prepares the tests and intervals.
func NewSides(a, b []float64) Sides {
	s := ranked(a, b)
	s.positive = len(a) > 0 && len(b) > 0 && min(slices.Min(a), slices.Min(b)) > 0
	if s.Few = min(len(a), len(b)) < MinRuns; !s.Few {
		s.lawA, s.lawB = medianLaw(a), medianLaw(b)
	}
	return s
}

// ranked prepares the tests alone.
func ranked(a, b []float64) Sides {
	return Sides{A: a, B: b, ranks: doubledRanks(a, b)}
}

// Ratio has the intervals of the median of A over that of B, and of the change from A to B in percent; nil if there are
// too few launches or a ratio has no meaning.
func (s Sides) Ratio() (ratio, percent *Interval) {
	if s.Few || !s.positive {
		return nil, nil
	}
	return ratios(s.lawA.logs().difference(s.lawB.logs(), beyond))
}

// ratios are the intervals of a ratio and of the change, from the logarithms of the ratio's ends.
func ratios(lo, hi float64) (ratio, percent *Interval) {
	return exponentials(lo, hi), &Interval{Lo: Round(100*math.Expm1(-hi), 6), Hi: Round(100*math.Expm1(-lo), 6),
		Confidence: Confidence}
}

// Change is the interval of the median of B minus that of A.
func (s Sides) Change() *Interval {
	if s.Few {
		return nil
	}
	lo, hi := s.lawB.difference(s.lawA, beyond)
	return &Interval{Lo: Round(lo, 6), Hi: Round(hi, 6), Confidence: Confidence}
}

// draws is how many means over cells are drawn, twice each. The second time the sides swap their random streams, so
// that the interval of A over B is the inverse of that of B over A.
const draws = 500

// MeanRatio is the interval of the geometric mean over cells of ratios of medians; nil if one of them has none. There
// are too many samples to count, so they are drawn with a fixed seed: the same records give the same interval.
func MeanRatio(cells []Sides) (ratio, percent *Interval) {
	var all [][2]law
	for _, s := range cells {
		if s.Few || !s.positive {
			return nil, nil
		}
		all = append(all, [2]law{s.lawA.logs(), s.lawB.logs()})
	}
	return ratios(drawnMean(all))
}

// MeanOf is the same for medians alone.
func MeanOf(samples [][]float64) *Interval {
	var all [][2]law
	for _, s := range samples {
		if len(s) < MinRuns || slices.Min(s) <= 0 {
			return nil
		}
		all = append(all, [2]law{medianLaw(s).logs(), {values: []float64{0}, upTo: []float64{1}}})
	}
	return exponentials(drawnMean(all))
}

func exponentials(lo, hi float64) *Interval {
	return &Interval{Lo: Round(math.Exp(lo), 6), Hi: Round(math.Exp(hi), 6), Confidence: Confidence}
}

// drawnMean is the interval of the mean difference of the logarithms of both sides.
func drawnMean(all [][2]law) (lo, hi float64) {
	seeded := rand.New(rand.NewPCG(1, uint64(len(all))))
	sums := make([]float64, 0, 2*draws)
	for range draws {
		sum, turned := 0.0, 0.0
		for _, l := range all {
			u, v := seeded.Float64(), seeded.Float64()
			sum += l[0].drawn(u) - l[1].drawn(v)
			turned += l[0].drawn(v) - l[1].drawn(u)
		}
		sums = append(sums, sum/float64(len(all)), turned/float64(len(all)))
	}
	slices.Sort(sums)
	out := int((1 - Confidence) / 2 * float64(len(sums)))
	return sums[out], sums[len(sums)-1-out]
}
