package stats

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/aclements/go-moremath/mathx"
	"golang.org/x/perf/benchmath"
)

// Test is the result of a test whether two samples differ.
type Test struct {
	P           float64
	Least       float64 // the smallest p that samples of these sizes can have
	Left, Right int
	Weight      float64 // in its family
	// tests of a family with the same text here order the same launches in the same way, and count as one
	Same string
}

// exactUpTo is how many values are permuted exactUpTo; above it the normal limit is close enough.
const exactUpTo = 60

// Chance is Mann and Whitney's two-sided test.
func (s Sides) Chance() Test {
	t := Test{Left: len(s.A), Right: len(s.B)}
	t.Least = min(1, 2/math.Exp(mathx.Lchoose(t.Left+t.Right, t.Left)))
	if len(s.ranks) <= exactUpTo {
		t.P = twoSided(s.rankSums())
		return t
	}
	x, y := s.A, s.B
	if len(x) > len(y) {
		x, y = y, x // the library's distribution is wrong the other way round where there are ties
	}
	t.P = benchmath.AssumeNothing.Compare(sampleOf(x), sampleOf(y)).P
	return t
}

func sampleOf(values []float64) *benchmath.Sample {
	return benchmath.NewSample(values, &benchmath.DefaultThresholds)
}

// rankSums counts the ways to draw as many values as a has, by their rank sum. It also returns the rank sum of a.
func (s Sides) rankSums() (ways []float64, seen int) {
	for _, r := range s.ranks[:len(s.A)] {
		seen += r
	}
	ranks := slices.Sorted(slices.Values(s.ranks))
	if len(slices.Compact(slices.Clone(ranks))) < len(ranks) {
		return waysToDraw(len(s.A), ranks), seen
	}
	key := [2]int{len(s.A), len(ranks)}
	known, ok := untied.Load(key)
	if !ok {
		known, _ = untied.LoadOrStore(key, waysToDraw(len(s.A), ranks))
	}
	return known.([]float64), seen
}

// untied counts the ways to draw from values without ties, by the number of values and of draws.
var untied sync.Map

func waysToDraw(n int, ranks []int) []float64 {
	highest := 0
	for _, r := range ranks {
		highest += r
	}
	width, sofar := highest+1, 0
	by := make([]float64, (n+1)*width) // by how many are drawn, and their sum
	by[0] = 1
	for i, r := range ranks {
		sofar += r
		for k := min(n, i+1); k > 0; k-- {
			to, from := by[k*width+r:k*width+sofar+1], by[(k-1)*width:k*width]
			for sum := range to {
				to[sum] += from[sum]
			}
		}
	}
	return by[n*width:]
}

// twoSided is the two-sided p of a rank sum: twice the share of draws at least as extreme on the rarer side.
func twoSided(ways []float64, seen int) float64 {
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

// OverCells is Mann and Whitney's test over several cells: values are permuted within each cell, and rank sums added.
// The level of a cell cancels out; a shift that all cells share adds up.
func OverCells(cells []Sides) Test {
	t, n := Test{}, 0
	logLeast := math.Log(2)
	for _, c := range cells {
		t.Left, t.Right = t.Left+len(c.A), t.Right+len(c.B)
		logLeast -= mathx.Lchoose(len(c.A)+len(c.B), len(c.A))
	}
	n = t.Left + t.Right
	t.Least = min(1, math.Exp(logLeast))
	if n > 4*exactUpTo {
		t.P = approximate(cells)
		return t
	}
	ways, seen := []float64{1}, 0
	for _, c := range cells {
		more, sum := c.rankSums()
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
	t.P = twoSided(ways, seen)
	return t
}

// approximate is the same for many values, by the normal approximation.
func approximate(cells []Sides) float64 {
	off, variance := 0.0, 0.0
	for _, c := range cells {
		ranks := c.ranks
		n, n1 := float64(len(ranks)), float64(len(c.A))
		mean, squares := 0.0, 0.0
		for _, r := range ranks {
			mean += float64(r) / n
		}
		for i, r := range ranks {
			d := float64(r) - mean
			squares += d * d
			if i < len(c.A) {
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

// OrderOf describes the ranks of both sides' values in each pair. A figure and its inverse have the same description,
// because they are one question; pairs of which only some are inverted have another one.
func OrderOf(all ...Sides) string {
	var ranked, reversed []string
	for _, s := range all {
		turned := make([]int, len(s.ranks))
		for i, r := range s.ranks {
			turned[i] = 2*(len(s.ranks)+1) - r
		}
		ranked, reversed = append(ranked, fmt.Sprint(len(s.A), s.ranks)), append(reversed, fmt.Sprint(len(s.A), turned))
	}
	return min(strings.Join(ranked, " "), strings.Join(reversed, " "))
}

// doubledRanks are the ranks of x, then of y, among all values, doubled so that those of ties are integers.
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

// Call is the conclusion of a test.
type Call string

// The calls.
const (
	Differs     Call = "different"
	TooSmall    Call = "too small to matter" // significant, but below the minimum effect
	Chance      Call = "no significant difference"
	TooFewToSay Call = "too few launches" // no values could have been significant
)

// Weight is the weight of a figure in Holm's correction. Headlines weigh more: with equal weights, the other figures of
// a family would hide a change of a tenth in a headline. Three headlines at 8 and three others at 1 leave each headline
// a level of 0.0148, which a shift of two standard deviations reaches in nine of ten cases with ten launches a side.
// With six launches a side, no other figure could ever differ significantly at that level. There, headlines weigh 6,
// which costs them nothing because p takes only a few values. The weight depends on the number of launches, never on
// their values.
func Weight(headline bool, least float64) float64 {
	const ofThree, heavy, lighter = 3, 8, 6
	switch {
	case !headline:
		return 1
	case least > Alpha/(ofThree*heavy+ofThree):
		return lighter
	}
	return heavy
}

// CallOf is the call of a corrected test; best is the smallest corrected p that its launches allow.
func CallOf(significant bool, best float64) Call {
	switch {
	case significant:
		return Differs
	case best > Alpha*(1+1e-9):
		return TooFewToSay
	}
	return Chance
}

// Distinct counts tests that differ.
func Distinct(tests []Test) int {
	seen := map[string]bool{}
	for _, t := range tests {
		seen[t.Same] = true
	}
	return len(seen)
}

// Correction is how the p values of a family are corrected for their number.
type Correction string

// The corrections. Holm keeps the chance of any false difference at Alpha, whatever else differs. Hochberg (Benjamini
// and Hochberg) keeps it at Alpha if nothing differs; else it keeps the expected share of false differences among all
// that are found at Alpha.
const (
	ByHolm     Correction = "Holm"
	ByHochberg Correction = "Benjamini-Hochberg"
)

// MostByHolm is how many pairs of cells a family has at most to be corrected by Holm. With more, six launches a side
// could not show any difference: of 924 orders of six and six launches, two are the most extreme, and p is at least
// 0.0022.
const MostByHolm = 5

// CorrectionOf chooses by the number of pairs, never by what was measured.
func CorrectionOf(pairs int) Correction {
	if pairs > MostByHolm {
		return ByHochberg
	}
	return ByHolm
}

// Correct corrects p values for the number of tests, by their weights. Equal tests count once, with the largest of
// their weights.
func (c Correction) Correct(tests []Test, of func(Test) float64) []float64 {
	if c == ByHochberg {
		return hochberg(tests, of)
	}
	return Holm(tests, of)
}

// weighed has the distinct tests, in the order of their p values by their weights.
type weighed struct {
	order    []int // index of one of each
	heaviest map[string]float64
	sum      float64
}

func weigh(tests []Test, of func(Test) float64) *weighed {
	w := &weighed{heaviest: map[string]float64{}}
	for i, t := range tests {
		if _, again := w.heaviest[t.Same]; !again {
			w.order = append(w.order, i)
		}
		w.heaviest[t.Same] = max(w.heaviest[t.Same], t.Weight)
	}
	for _, weight := range w.heaviest {
		w.sum += weight // of whole numbers: their order changes nothing
	}
	share := func(i int) float64 { return of(tests[i]) / w.heaviest[tests[i].Same] }
	sort.SliceStable(w.order, func(i, j int) bool { return share(w.order[i]) < share(w.order[j]) })
	return w
}

// spread gives each test the corrected p of its like.
func spread(tests []Test, corrected map[string]float64) []float64 {
	out := make([]float64, len(tests))
	for i, t := range tests {
		out[i] = corrected[t.Same]
	}
	return out
}

// Holm is Holm's correction.
func Holm(tests []Test, of func(Test) float64) []float64 {
	w := weigh(tests, of)
	corrected, highest, left := map[string]float64{}, 0.0, w.sum
	for _, i := range w.order {
		same := tests[i].Same
		highest = max(highest, min(1, of(tests[i])/w.heaviest[same]*left))
		corrected[same] = highest
		left -= w.heaviest[same]
	}
	return spread(tests, corrected)
}

// hochberg is Benjamini and Hochberg's correction with weights (Genovese and others, 2006). It never makes a p smaller.
func hochberg(tests []Test, of func(Test) float64) []float64 {
	w := weigh(tests, of)
	corrected, lowest := map[string]float64{}, 1.0
	for rank := len(w.order); rank > 0; rank-- {
		p, same := of(tests[w.order[rank-1]]), tests[w.order[rank-1]].Same
		lowest = min(lowest, p/w.heaviest[same]*w.sum/float64(rank))
		corrected[same] = max(lowest, p)
	}
	return spread(tests, corrected)
}
