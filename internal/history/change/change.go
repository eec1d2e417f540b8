// Package change finds where a series of runs changed, and keeps its rate of false alarms whatever the distribution.
//
// A series has one value a run, in the order of commits. Run by run, as a nightly check would, Find compares the runs
// before each possible change with those behind it by Mann and Whitney's test. If nothing changed, every order of the
// runs is as likely as any other, so the chance of a false alarm depends on ranks alone: not on the distribution, and
// not on how noisy the machine is. Each look at a new run may alarm with the probability of its budget. The looks at
// one series are not independent, and neither are the places where it may have changed; Factor has by how much more
// often one of them alarms, from simulations of the null.
//
// It cannot know that runs are comparable. If a machine is slower for a week, that is a change of the series. Ratios
// to a control cell have to remove it before.
package change

import (
	"llmparity/internal/stats"
	"math"
)

const (
	// Before and After are the smallest numbers of runs on both sides of a change.
	Before = 5
	After  = 3
	// Window is how many runs a look goes back. More would find no smaller change that matters, and take longer.
	Window = 200
	// Monthly is the share of dashboards without a change that have an alarm within a month.
	Monthly = 0.05
)

// Change is a place where a series changed.
type Change struct {
	At   int // the first run behind it
	Seen int // the run at which it was found
	// The runs that it is measured with: From to At before it, At to To behind it.
	From, To int
	// Percent is the change from before to behind, and Lo and Hi its 95% interval. For series that are not logarithms
	// they are differences.
	Percent, Lo, Hi float64
	// Chance is how likely a dashboard without changes shows one as clear as this, or clearer, within a month.
	Chance float64
	Beside bool // it is measured beside other cells
	// Suspected marks what is not an alarm yet: too few runs behind it. More is how many further runs can decide.
	Suspected bool
	More      int
}

// Series are the values of runs, and for each the probability with which its look may alarm if nothing changed.
type Series struct {
	Values []float64
	Budget []float64
	Log    bool // values are logarithms
	Worse  int  // 1 if larger values are worse, -1 if smaller ones; 0: neither
	// Beside has, if Values are ratios to a control cell, those to the cells beside it; NaN: a run has none.
	Beside []float64
}

// toWorse is the part of the budget that changes for the worse have. The rest is for those for the better, which hurt
// nobody who learns of them late.
const toWorse = 0.9

// share is the part of the budget that changes of one direction have.
func (s Series) share(up bool) float64 {
	switch {
	case s.Worse == 0:
		return 0.5
	case up == (s.Worse > 0):
		return toWorse
	}
	return 1 - toWorse
}

// odds are how likely a look shows a one-sided p as small if nothing changed, with the whole budget spent on such.
func (s Series) odds(p float64, up bool, runs int) float64 {
	return p / s.share(up) * Factor(2*p, runs)
}

// Find lists the changes of a series in order; a suspected one can only be the last.
func Find(s Series) []Change {
	if s.Beside != nil {
		return both(s)
	}
	var out []Change
	sc := newScan(s.Values)
	for i := range s.Values {
		sc.add(i)
		at, odds := sc.best(s, s.Budget[i])
		if odds > s.Budget[i] {
			continue
		}
		out = append(out, Change{At: at, Seen: i})
		sc.restart(at, i)
	}
	for i := range out {
		place(s, out, i)
	}
	if c, ok := suspected(s, sc, out); ok {
		out = append(out, c)
	}
	return out
}

// scan has, for each possible change of the runs since the last one, Mann and Whitney's count: of how many pairs of a
// run before and a run behind it the latter is larger. Counts are doubled, so that ties are whole numbers.
type scan struct {
	values     []float64
	start, end int
	counts     []int32 // by the first run behind the change, from start
}

// room is for counts of so many runs: each run that is forgotten leaves a place before the others.
const room = 8 * Window

func newScan(values []float64) *scan {
	return &scan{values: values, counts: make([]int32, 0, min(room, len(values)+1))}
}

func (sc *scan) runs() int { return sc.end - sc.start }

// add takes the next run.
func (sc *scan) add(i int) {
	if sc.runs() == Window {
		sc.slide(i)
		return
	}
	x, larger := sc.values[i], int32(0)
	values := sc.values[sc.start:][:len(sc.counts)]
	for k, v := range values {
		sc.counts[k] += larger // of the runs before start+k
		larger += order(v, x)
	}
	sc.counts = append(sc.counts, larger)
	sc.end = i + 1
}

// slide takes the next run and forgets the oldest.
func (sc *scan) slide(i int) {
	x, y := sc.values[sc.start], sc.values[i]
	// Pairs of the oldest with runs from start+k on, and of the next with those before.
	gone, larger := sc.counts[1], int32(0)
	values := sc.values[sc.start+1:][:Window-1]
	counts := sc.counts[1:][:Window-1]
	for k, v := range values {
		counts[k] += larger - gone
		gone -= order(x, v)
		larger += order(v, y)
	}
	if cap(counts) == len(counts) {
		counts = append(make([]int32, 0, room), counts...)
	}
	sc.counts = append(counts, larger)
	sc.start, sc.end = sc.start+1, i+1
}

// order is 2 if b is larger than a, 1 if they are equal. It has no branch, which would be guessed wrong half the time.
func order(a, b float64) int32 { return one(a < b) + one(a <= b) }

func one(is bool) int32 {
	if is {
		return 1
	}
	return 0
}

// restart begins anew behind a change.
func (sc *scan) restart(at, last int) {
	sc.start, sc.end, sc.counts = at, at, sc.counts[:0]
	for i := at; i <= last; i++ {
		sc.add(i)
	}
}

// best is the most improbable place of a change, and its odds; 1 if none is near the budget.
func (sc *scan) best(s Series, budget float64) (at int, least float64) {
	n := sc.runs()
	least = 1
	try := func(k int) {
		if odds := sc.odds(s, k); odds < least {
			at, least = sc.start+k, odds
		}
	}
	counts := sc.counts[:n]
	scale := float64(n+1) / 3
	for k := Before; k <= n-After; k++ {
		if k == exactly+1 && k < n-exactly {
			k = n - exactly // large sides are looked at below
		}
		m := float64(k * (n - k))
		if d := m - float64(counts[k]); d*d > 4*scale*m { // d is twice how far from the middle, p a twentieth
			try(k)
		}
	}
	// Among large sides odds follow z, and take long to compute. Tails of ranks are lighter than normal ones: the same
	// p has a smaller z, by less than a half.
	large := math.Sqrt2*math.Erfcinv(min(2*budget, 1)) - 0.5
	var center [2]int
	var most [2]float64
	for k := exactly + 1; k < n-exactly; k++ {
		m := float64(k * (n - k))
		if d := m - float64(counts[k]); d*d > large*large*scale*m {
			way := int(one(d < 0))
			if z := d * d / m; z > most[way] {
				center[way], most[way] = k, z
			}
		}
	}
	for way, k := range center {
		if most[way] > 0 {
			try(k)
		}
	}
	return at, least
}

// odds are those of a change before the run start+k.
func (sc *scan) odds(s Series, k int) float64 {
	n := sc.runs()
	return s.odds(Tail(k, n-k, sc.deficit(k)), int(sc.counts[k]) > k*(n-k), n)
}

// deficit is how many pairs are not in the order of most.
func (sc *scan) deficit(k int) float64 {
	n := sc.runs()
	u := float64(sc.counts[k]) / 2
	return min(u, float64(k*(n-k))-u)
}

// suspicion is how much more likely than an alarm a suspicion may be if nothing changed: its price is some launches.
// It is about one night in thirty.
const suspicion = 20

// suspected looks at the newest end for what is not sure yet.
func suspected(s Series, sc *scan, found []Change) (Change, bool) {
	n, last := sc.runs(), len(s.Values)-1
	if n == 0 || len(found) > 0 && found[len(found)-1].Seen == last {
		return Change{}, false
	}
	k, least := 0, suspicion*s.Budget[last]
	for behind := min(7, n-2*Before); behind > 0; behind-- {
		before, after := s.Values[sc.start:sc.start+n-behind], s.Values[sc.start+n-behind:]
		if odds := sc.odds(s, n-behind) * beyond(before, after); odds <= least {
			k, least = n-behind, odds
		}
	}
	if k == 0 {
		return Change{}, false
	}
	c := Change{At: sc.start + k, Seen: last, From: sc.start, To: last + 1, Suspected: true,
		More: s.more(k, n-k, int(sc.counts[k]) > k*(n-k), s.Budget[last])}
	measure(s, &c)
	return c, c.More > 0
}

// beyond is how much less likely it is that runs are as far out as these, and not only as far as the farthest before.
// Ranks can't tell. It assumes that tails fall as those of Student's distribution with three degrees of freedom do.
func beyond(before, after []float64) float64 {
	mid := stats.Median(before)
	most, least := 0.0, math.Inf(1)
	for _, v := range before {
		most = max(most, math.Abs(v-mid))
	}
	for _, v := range after {
		least = min(least, math.Abs(v-mid))
	}
	if least <= most {
		return 1
	}
	return math.Pow(most/least, 3*float64(len(after)))
}

// more is how many further runs behind a change can make an alarm of it, if all of them confirm it; 0: too many.
func (s Series) more(before, behind int, up bool, budget float64) int {
	for n := max(behind+1, After); n <= behind+9; n++ {
		if s.odds(Tail(before, n, 0), up, before+n) <= budget {
			return n - behind
		}
	}
	return 0
}

// spread is a robust standard deviation. Values that are mostly equal have one of a millionth, so that any other value
// stands out.
func spread(values []float64) float64 {
	return max(stats.RobustDeviation(values), math.Abs(stats.Median(values))*1e-6, 1e-9)
}

// Middle is the mean of the middle half of sorted values: nearly as precise as the mean if they are normal, and as
// indifferent to single ones as it must be. Of fewer than four it is the median.
func Middle(sorted []float64) float64 {
	out := len(sorted) / 4
	if out == 0 {
		return stats.Median(sorted)
	}
	sum := 0.0
	for _, v := range sorted[out : len(sorted)-out] {
		sum += v
	}
	return sum / float64(len(sorted)-2*out)
}

// Budget is the probability of a false alarm that each look at one of so many series has, with so many runs a month.
func Budget(series, runsAMonth int) float64 {
	return Monthly / float64(max(series, 1)) / float64(max(runsAMonth, 30))
}

// Needed is how many runs a series needs before any change in it can be an alarm.
func Needed(budget float64) int {
	worse := Series{Worse: 1}
	for n := Before + After; n < Window; n++ {
		for behind := After; behind <= n/2 && n-behind >= Before; behind++ {
			if worse.odds(Tail(n-behind, behind, 0), true, n) <= budget {
				return n
			}
		}
	}
	return Window
}
