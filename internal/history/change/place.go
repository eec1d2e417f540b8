package change

import (
	"llmparity/internal/stats"
	"math"
	"slices"
)

// place finds where a change is, by all runs that are known now, and measures it. At the run where it was found, the
// most improbable place may lie a few runs beside the change.
func place(s Series, all []Change, i int) {
	c := &all[i]
	c.From, c.To = 0, len(s.Values)
	if i > 0 {
		c.From = all[i-1].At
	}
	if i+1 < len(all) {
		c.To = all[i+1].At
	}
	c.From, c.To = max(c.From, c.At-Window), min(c.To, c.At+Window)
	const around = 5
	low, high := max(c.From+1, c.At-around), min(c.To-1, c.At+around)
	if low <= high {
		c.At = split(clipped(s.Values[c.From:c.To], c.At-c.From), low-c.From, high-c.From) + c.From
	}
	measure(s, c)
	n := c.To - c.From
	u := pairsOutOfOrder(s.Values[c.From:c.At], s.Values[c.At:c.To])
	odds := s.odds(Tail(c.At-c.From, c.To-c.At, u), c.Percent > 0, n)
	c.Chance = min(Monthly, Monthly*odds/s.Budget[c.Seen])
}

// clipped limits what single runs count: to three deviations around the middle of their side.
func clipped(values []float64, at int) []float64 {
	out := slices.Clone(values)
	a, b := values[:at], values[at:]
	low := min(stats.Median(a)-3*spread(a), stats.Median(b)-3*spread(b))
	high := max(stats.Median(a)+3*spread(a), stats.Median(b)+3*spread(b))
	for i, v := range out {
		out[i] = max(low, min(high, v))
	}
	return out
}

// split is the place between low and high at which two means fit the values best.
func split(values []float64, low, high int) (best int) {
	total := 0.0
	for _, v := range values {
		total += v
	}
	left, most := 0.0, math.Inf(-1)
	for i, v := range values {
		if i >= low && i <= high {
			n, m := float64(i), float64(len(values)-i)
			if fit := left*left/n + (total-left)*(total-left)/m; fit > most {
				best, most = i, fit
			}
		}
		left += v
	}
	return best
}

func pairsOutOfOrder(before, behind []float64) float64 {
	larger := 0
	for _, a := range before {
		for _, b := range behind {
			larger += int(order(a, b))
		}
	}
	u := float64(larger) / 2
	return min(u, float64(len(before)*len(behind))-u)
}

// measure has the size of a change: the middle of all differences of a run behind it and one before, and the interval
// of those that the test does not reject.
func measure(s Series, c *Change) {
	var all []float64
	before, behind := s.Values[c.From:c.At], s.Values[c.At:c.To]
	for _, a := range before {
		for _, b := range behind {
			all = append(all, b-a)
		}
	}
	slices.Sort(all)
	n, m := float64(len(before)), float64(len(behind))
	// Below about ten pairs nothing is rejected, and the interval is all of them.
	out := int(max(0, n*m/2-1.96*math.Sqrt(n*m*(n+m+1)/12)))
	c.Percent, c.Lo, c.Hi = s.size(stats.Median(all)), s.size(all[out]), s.size(all[len(all)-1-out])
}

// size is a difference of values for people.
func (s Series) size(d float64) float64 {
	if s.Log {
		return 100 * math.Expm1(d)
	}
	return d
}
