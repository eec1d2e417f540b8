package change

import (
	"math"
	"sync"
)

// exactly is up to how many runs on the smaller side the tail is counted; beyond, it is a saddlepoint approximation.
const exactly = 12

// Tail is the probability that of a random order of so many runs, at most u pairs of one on each side are out of order.
// It is for small probabilities: where they exceed a hundredth it may return 1.
func Tail(before, behind int, u float64) float64 {
	few, many := min(before, behind), max(before, behind)
	whole := int(math.Ceil(u))
	switch {
	case few == 0 || 2*whole >= few*many:
		return 1
	case few <= exactly:
		table := tails(few, many)
		if whole >= len(table) {
			return 1
		}
		return table[whole]
	}
	return saddle(few, many, few*many-whole)
}

// memo has tables of exact tails. It is filled by whoever needs one; two may compute the same.
var memo [exactly + 1][Window + 1]struct {
	once  sync.Once
	table []float64
}

func tails(few, many int) []float64 {
	if many > Window {
		return count(few, many)
	}
	m := &memo[few][many]
	m.once.Do(func() { m.table = count(few, many) })
	return m.table
}

// count counts the orders by how many pairs are out of order: the coefficients of the Gaussian binomial. It stops
// where the tail exceeds a fiftieth.
func count(few, many int) []float64 {
	mean := float64(few*many) / 2
	deviation := math.Sqrt(float64(few*many*(few+many+1)) / 12)
	most := int(max(mean-1.9*deviation, 0)) + 1
	c := make([]float64, most+1)
	c[0] = 1
	for i := 1; i <= few; i++ {
		for d := most; d >= many+i; d-- {
			c[d] -= c[d-many-i]
		}
		for d := i; d <= most; d++ {
			c[d] += c[d-i]
		}
	}
	all := 1.0
	for i := 1; i <= few; i++ {
		all *= float64(many+i) / float64(i)
	}
	sum := 0.0
	for d := range c {
		sum += c[d]
		c[d] = sum / all
	}
	return c
}

// saddle is Lugannani and Rice's approximation of the probability of at least k pairs in order, within 1% for the sizes
// and tails that it is used for.
func saddle(few, many, k int) float64 {
	mean := float64(few*many) / 2
	variance := float64(few*many*(few+many+1)) / 12
	x := float64(k)
	t := (x - mean) / variance
	var first, second float64
	for range 50 {
		first, second = 0, 0
		for i := 1; i <= few; i++ {
			a, b := slope(float64(many+i), t)
			c, d := slope(float64(i), t)
			first, second = first+a-c, second+b-d
		}
		step := (first - x) / second
		if t -= step; t <= 0 {
			return 1
		}
		if math.Abs(step) < 1e-10*t {
			break
		}
	}
	generating := 0.0
	for i := 1; i <= few; i++ {
		generating += float64(many)*t + math.Log(-math.Expm1(-float64(many+i)*t)) -
			math.Log(-math.Expm1(-float64(i)*t)) -
			math.Log(float64(many+i)/float64(i))
	}
	w := math.Sqrt(2 * (t*x - generating))
	v := -math.Expm1(-t) * math.Sqrt(second)
	density := math.Exp(-w*w/2) / math.Sqrt(2*math.Pi)
	return min(1, math.Erfc(w/math.Sqrt2)/2+density*(1/v-1/w))
}

// slope has the first two derivatives of log(exp(nt)-1).
func slope(n, t float64) (first, second float64) {
	e := -math.Expm1(-n * t)
	return n / e, -n * n * math.Exp(-n*t) / (e * e)
}
