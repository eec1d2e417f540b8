package recount

import (
	"math"
	"slices"
)

// What stands beside a figure of its launches: values far from all others, a drift, launches that vary much.

// exactOrders is the most launches of which orders are counted.
const exactOrders = 60

// marks are the warnings that a figure must have, by code, with the numbers that each says.
func marks(f Figure) map[string][]saying {
	out := map[string][]saying{}
	n, center := len(f.Values), math.Abs(f.Median)
	if n < few {
		return out
	}
	off := away(f)
	deviation := 1.4826 * middle(off)
	far, farthest := 0, 0
	for i, v := range off {
		if v > 8*deviation && v > 0.02*center {
			if far++; far == 1 || v > off[farthest] {
				farthest = i
			}
		}
	}
	if far > 0 {
		out["outliers"] = []saying{{"", float64(far)}, {" of ", float64(n)}, {"the farthest ", f.Values[farthest]},
			{"(attempt ", float64(f.launches[farthest])}}
	}
	if slope, p := drift(f.Values); p <= 0.01 && math.Abs(slope)*float64(n-1) > 0.02*center {
		out["trend"] = []saying{{"", slope}, {"Mann-Kendall p = ", p}}
	}
	if deviation > center/10 && center > 0 {
		out["noisy"] = []saying{{"launches vary by ", 100 * deviation / center}}
	}
	return out
}

// away is how far each value lies from the median.
func away(f Figure) []float64 {
	var out []float64
	for _, v := range f.Values {
		out = append(out, math.Abs(v-f.Median))
	}
	return out
}

// drift is the median slope between two launches, and how likely orders are that rise or fall as much: of values that
// all differ by counting orders, else by the normal law with ties taken off.
func drift(values []float64) (slope, p float64) {
	var slopes []float64
	rises, n := 0, len(values)
	same := map[float64]float64{}
	for j, later := range values {
		same[later]++
		for i, v := range values[:j] {
			slopes = append(slopes, (later-v)/float64(j-i))
			if later > v {
				rises++
			} else if later < v {
				rises--
			}
		}
	}
	if len(same) == n && n <= exactOrders {
		return middle(slopes), orders(n, rises)
	}
	square := func(m float64) float64 { return m * (m - 1) * (2*m + 5) }
	variance := square(float64(n))
	for _, m := range same {
		variance -= square(m)
	}
	if variance <= 0 || rises == 0 {
		return middle(slopes), 1
	}
	return middle(slopes), math.Erfc((math.Abs(float64(rises)) - 1) / math.Sqrt(variance/9))
}

// orders is the share of all orders of n values in which as many pairs rise more than fall, or the other way round. One
// more value than there were goes before none, one, or all of them, each as likely.
func orders(n, rises int) float64 {
	likely := map[int]float64{0: 1} // by rises less falls
	for k := 1; k < n; k++ {
		next := map[int]float64{}
		for r, share := range likely {
			for before := 0; before <= k; before++ {
				next[r+k-2*before] += share / float64(k+1)
			}
		}
		likely = next
	}
	p := 0.0
	for r, share := range likely {
		if max(r, -r) >= max(rises, -rises) {
			p += share
		}
	}
	return min(1, p)
}

// marked holds a figure's warnings against those.
func (c *check) marked(what, name string, of Figure, all []warned) {
	c.Helper()
	want := map[string][]saying{}
	if !slices.Contains([]string{"tokens", "prompt_tokens", "cached_prompt_tokens"}, name) {
		want = marks(of)
	}
	for _, code := range []string{"outliers", "trend", "noisy"} {
		if w, ok := c.only(what, code, all, want[code] != nil); ok {
			c.sentence(what, w, want[code])
		}
	}
}
