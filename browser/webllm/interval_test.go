package webllm

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// interval is a median and what order statistics hold it in.
type interval struct{ median, low, high float64 }

// medianOf sorts what it is given. The k-th values from below and from above hold the median with at least 95 %, k
// being the largest for which a coin falls the same way fewer than k times of n in at most 2.5 %.
func medianOf(all []float64) interval {
	slices.Sort(all)
	n := len(all)
	k, tail, term := 0, 0.0, math.Pow(0.5, float64(n))
	for ; tail+term <= 0.025; k++ {
		tail += term
		term *= float64(n-k) / float64(k+1)
	}
	k = max(k, 1)
	return interval{(all[(n-1)/2] + all[n/2]) / 2, all[k-1], all[n-k]}
}

func (i interval) String() string {
	return fmt.Sprintf("%.3f (95 %%: %.3f to %.3f)", i.median, i.low, i.high)
}

func TestIntervalsHoldTheMedian(t *testing.T) {
	for n, k := range map[int]int{6: 1, 20: 6, 24: 7, 60: 22} { // as tables of the sign test have them
		var all []float64
		for i := range n {
			all = append(all, float64(n-i))
		}
		want := interval{float64(n+1) / 2, float64(k), float64(n + 1 - k)}
		if got := medianOf(all); got != want {
			t.Errorf("of 1 to %d: %v, want %v", n, got, want)
		}
	}
}
