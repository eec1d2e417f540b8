package change

import (
	"math"
	"math/bits"
	"testing"
)

// enumerated counts all orders of a few runs.
func enumerated(before, behind int, u float64) float64 {
	n, all, found := before+behind, 0, 0
	for set := range 1 << n {
		if bits.OnesCount(uint(set)) != behind {
			continue
		}
		all++
		out, seen := 0, 0
		for i := range n {
			if set>>i&1 == 1 {
				seen++
			} else {
				out += seen
			}
		}
		if float64(out) <= u {
			found++
		}
	}
	return float64(found) / float64(all)
}

func TestTailCountsOrders(t *testing.T) {
	for _, size := range [][2]int{{3, 3}, {5, 3}, {3, 9}, {7, 7}, {10, 6}} {
		for u := 0.0; u < 9; u += 0.5 {
			want := enumerated(size[0], size[1], math.Ceil(u))
			if got := Tail(size[0], size[1], u); got < 1 && math.Abs(got-want) > 1e-12 || got == 1 && want < 0.02 {
				t.Errorf("%v, %v: %v, want %v", size, u, got, want)
			}
		}
	}
}

func TestSaddlepointIsCloseToTheCount(t *testing.T) {
	for _, size := range [][2]int{{13, 40}, {20, 60}, {40, 40}, {13, 180}} {
		table := count(size[0], size[1])
		for u := 0; u < len(table); u++ {
			if table[u] < 1e-9 || table[u] > 0.01 {
				continue
			}
			got := saddle(size[0], size[1], size[0]*size[1]-u)
			if math.Abs(got/table[u]-1) > 0.02 {
				t.Errorf("%v, %d: %.4g, want %.4g", size, u, got, table[u])
			}
		}
	}
}
