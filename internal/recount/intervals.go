package recount

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
)

type ends struct{ Lo, Hi float64 }

// inference is of a report's JSON what it concludes: intervals of ratios and changes, and means over cells.
type inference struct {
	Cells []struct {
		Spec struct {
			Engine, Prompt string
			MaxTokens      int `json:"max_tokens"`
		}
		Device *struct{ Class string }
	}
	Comparisons []struct {
		Ratios []struct {
			Ratio           *float64
			Interval        *ends `json:"ratio_interval"`
			DeltaInterval   *ends `json:"delta_interval"`
			PercentInterval *ends `json:"delta_percent_interval"`
		}
	}
	Families []struct{ Means []mean }
	Groups   []struct {
		Name, Refused string
		Run           int
		Figures       []struct {
			Figure   string
			Mean     *float64 `json:"geomean"`
			Cells    int
			Interval *ends
		}
	}
	Statistics struct{ By []string }
}

type mean struct {
	Figure, Group   string
	Cells           int
	Left            int `json:"left_out"`
	Ratio           float64
	Interval        *ends   `json:"ratio_interval"`
	Percent         float64 `json:"delta_percent"`
	PercentInterval *ends   `json:"delta_percent_interval"`
	Raw             float64 `json:"p"`
	P               float64 `json:"p_holm"`
	Significant     bool
	Call            string
}

const (
	few  = 6     // launches a side: of fewer there is no interval
	tail = 0.025 // beyond either end
	// last is how far apart figures may be of which both were rounded to six decimals.
	last = 1.1e-6
)

// intervals has what is concluded from the launches: the law of what they might have been, and means over cells, which
// are corrected with the other tests of their family.
func (c *check) intervals(text []byte) {
	c.Helper()
	var inf inference
	if err := json.Unmarshal(text, &inf); err != nil {
		c.Fatal(err)
	}
	for i, comparison := range c.res.Comparisons {
		for k, r := range comparison.Ratios {
			x, y := c.cells[comparison.A].perLaunch(r.Figure), c.cells[comparison.B].perLaunch(r.Figure)
			if len(x) == 0 || len(y) == 0 {
				continue // which was said
			}
			what := fmt.Sprintf("%s of %s over %s", r.Figure, c.res.Cells[comparison.A].Label,
				c.res.Cells[comparison.B].Label)
			given := inf.Comparisons[i].Ratios[k]
			var ratio, change, percent quantiles
			if min(len(x), len(y)) >= few {
				law := func(of string, combined func(a, b float64) float64) quantiles {
					return kept(c.Work, fmt.Sprint(of, i, " ", r.Figure),
						func() quantiles { return pairs(c.medians(x), c.medians(y), combined) })
				}
				change = law("change", func(a, b float64) float64 { return b - a })
				if slices.Min(x) > 0 && slices.Min(y) > 0 && given.Ratio != nil {
					ratio = law("ratio", func(a, b float64) float64 { return a / b })
					percent = law("percent", func(a, b float64) float64 { return 100 * (b/a - 1) })
				}
			}
			c.within(what+", interval", given.Interval, ratio, 0, tail)
			c.within(what+", interval of the change", given.DeltaInterval, change, 0, tail)
			c.within(what+", interval of the percentage", given.PercentInterval, percent, 0, tail)
		}
	}
	c.means(inf)
	c.groups(inf)
	c.holm(c.tests)
}

// quantiles has values with the chance of each, rising; nil where there is no interval.
type quantiles []chanced

type chanced struct{ value, chance float64 }

// medians is the law of the median of as many draws from values as there are, each of them as likely every time. Of the
// draws as many as are among the first i values is a binomial, and of the rest as many as are among the next j-i is
// another: so the chance is known that the lower of the two in the middle is at most the i-th value and the upper at
// most the j-th, and differences of that are the law.
func medians(values []float64) quantiles {
	x := slices.Clone(values)
	slices.Sort(x)
	n := len(x)
	lower, upper := (n+1)/2, n/2+1
	atMost := make([][]float64, n+1)
	for i := range atMost {
		atMost[i] = make([]float64, n+1)
		for j := i; j <= n; j++ {
			for k := lower; k <= n; k++ {
				first := binomial(n, k, float64(i)/float64(n))
				for l := max(0, upper-k); i < n && l <= n-k; l++ {
					atMost[i][j] += first * binomial(n-k, l, float64(j-i)/float64(n-i))
				}
				if i == n {
					atMost[i][j] += first
				}
			}
		}
	}
	var out quantiles
	for i := range n {
		for j := i; j < n; j++ {
			p := atMost[i+1][j+1] - atMost[i][j+1]
			if j > i {
				p -= atMost[i+1][j] - atMost[i][j]
			}
			out = append(out, chanced{(x[i] + x[j]) / 2, p})
		}
	}
	return out.sorted()
}

func (c *check) medians(values []float64) quantiles {
	return kept(c.Work, fmt.Sprint("medians of ", values), func() quantiles { return medians(values) })
}

// binomial is the chance of k of n.
func binomial(n, k int, p float64) float64 {
	out := 1.0
	for i := range k {
		out *= float64(n-i) / float64(i+1) * p
	}
	return out * math.Pow(1-p, float64(n-k))
}

func (q quantiles) sorted() quantiles {
	slices.SortFunc(q, func(a, b chanced) int { return cmp.Compare(a.value, b.value) })
	return q
}

// pairs goes through every pair of medians.
func pairs(a, b quantiles, of func(a, b float64) float64) quantiles {
	var out quantiles
	for _, x := range a {
		for _, y := range b {
			if p := x.chance * y.chance; p > 0 {
				out = append(out, chanced{of(x.value, y.value), p})
			}
		}
	}
	return out.sorted()
}

// at is the first value with more than a share of all up to it.
func (q quantiles) at(share float64) float64 {
	sum := 0.0
	for _, v := range q {
		if sum += v.chance; sum > share {
			return v.value
		}
	}
	return q[len(q)-1].value
}

// within holds an interval against what its law says. Where a share is met to within what sums of floats can tell,
// either neighbour will do.
func (c *check) within(what string, got *ends, law quantiles, lost, tail float64) {
	c.Helper()
	c.compared++
	if got == nil || law == nil {
		if (got == nil) != (law == nil) {
			c.Errorf("%s is %v in the report; worked out again there is one: %v", what, got, law != nil)
		}
		return
	}
	for _, end := range []struct{ got, share float64 }{{got.Lo, tail}, {got.Hi, 1 - tail}} {
		lo, hi := law.at(end.share-1e-9), law.at(end.share+1e-9)
		if slack := lost + last*max(1, math.Abs(hi)); !(end.got >= lo-slack && end.got <= hi+slack) {
			c.Errorf("%s ends at %v in the report, and at %v to %v worked out again", what, end.got, lo, hi)
		}
	}
}

// sample is what a mean has of one of its pairs of cells.
type sample struct {
	x, y  []float64
	ratio float64 // of the medians over all repetitions
	many  bool    // of cells with requests that come together
}

// means works out the means over pairs of cells that have the asked fields in common, which are one more test each of
// their family.
func (c *check) means(inf inference) {
	by := slices.DeleteFunc(slices.Clone(inf.Statistics.By), func(s string) bool { return s == "run" })
	if inf.Statistics.By == nil {
		by = []string{"engine"}
	}
	if !slices.Contains(by, "device") {
		by = append(by, "device")
	}
	want := map[string][]sample{}
	used := map[string]bool{} // a launch counts once
	for _, comparison := range c.res.Comparisons {
		var words []string
		for _, name := range by {
			x, y := c.field(inf, comparison.A, name), c.field(inf, comparison.B, name)
			if x != y {
				x += " against " + y
			}
			words = append(words, name+" "+x)
		}
		for _, r := range comparison.Ratios {
			key := fmt.Sprint(r.Family, ": ", r.Figure, " of ", strings.Join(words, ", "))
			a, b := fmt.Sprint(key, " A ", comparison.A), fmt.Sprint(key, " B ", comparison.B)
			if r.Ratio == nil || used[a] || used[b] {
				continue
			}
			used[a], used[b] = true, true
			x, y := c.cells[comparison.A], c.cells[comparison.B]
			want[key] = append(want[key],
				sample{x.perLaunch(r.Figure), y.perLaunch(r.Figure),
					x.Figures[r.Figure].Median / y.Figures[r.Figure].Median,
					x.load != nil})
		}
	}
	for f, family := range inf.Families {
		for _, m := range family.Means {
			key := fmt.Sprint(f, ": ", m.Figure, " of ", m.Group)
			if len(want[key]) < 2 {
				c.Errorf("%s: a mean over %d pairs in the report, and %d worked out again", key, m.Cells,
					len(want[key]))
				continue
			}
			c.mean("mean "+key, f, m, want[key])
			delete(want, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if len(want[key]) > 1 {
			c.Errorf("%s: the report has no mean over %d pairs", key, len(want[key]))
		}
	}
}

// field is what tells cells apart, in words.
func (c *check) field(inf inference, cell int, name string) string {
	switch spec := inf.Cells[cell].Spec; name {
	case "engine":
		return spec.Engine
	case "prompt":
		return fmt.Sprintf("%q", spec.Prompt)
	case "output_len":
		return fmt.Sprint(spec.MaxTokens)
	case "device":
		if inf.Cells[cell].Device == nil {
			return "unknown"
		}
		return inf.Cells[cell].Device.Class
	}
	c.Fatalf("means by %s are not worked out again", name)
	return ""
}

func (c *check) mean(what string, family int, m mean, samples []sample) {
	c.same(what+", pairs", float64(m.Cells), float64(len(samples)))
	logs, lost, enough := 0.0, 0.0, true // each pair's ratio was rounded before
	var up, down []string
	best := 2.0
	for _, s := range samples {
		best /= choose(len(s.x)+len(s.y), len(s.x))
		ratio := s.ratio
		logs += math.Log(ratio) / float64(len(samples))
		lost = max(lost, last/ratio)
		enough = enough && min(len(s.x), len(s.y)) >= few && slices.Min(s.x) > 0 && slices.Min(s.y) > 0
		lower, higher := places(s.x, s.y)
		up, down = append(up, lower), append(down, higher)
	}
	c.about(what, m.Ratio, math.Exp(logs), last+lost*math.Exp(logs))
	c.about(what+", percent", m.Percent, 100*math.Expm1(-logs), last+100*lost*math.Exp(-logs))
	if c.compared++; (m.Interval != nil) != enough || (m.PercentInterval != nil) != enough {
		c.Errorf("%s: intervals %v and %v in the report; worked out again there are any: %v", what, m.Interval,
			m.PercentInterval, enough)
	} else if enough {
		c.drawn(what, *m.Interval, samples)
		// Both are made of the same draws; the ratio's was rounded.
		turned := func(end float64) (percent, slack float64) { return 100 * (1/end - 1), last + 100*last/(end*end) }
		lower, slack := turned(m.Interval.Hi)
		c.about(what+", lower end of the percentage", m.PercentInterval.Lo, lower, slack)
		upper, slack := turned(m.Interval.Lo)
		c.about(what+", upper end of the percentage", m.PercentInterval.Hi, upper, slack)
	}
	p := kept(c.Work, fmt.Sprint("together ", samples), func() float64 { return together(samples) })
	c.compared++
	if math.Abs(p-m.Raw) > 1e-8 {
		c.Errorf("%s: p is %v in the report, and %v by going through every way to draw", what, m.Raw, p)
	}
	// The other way round is the same test where all cells are: not where some are.
	same := min(fmt.Sprint("mean ", m.Group, up), fmt.Sprint("mean ", m.Group, down))
	c.tests = append(c.tests, holmTest{what, ratio{Figure: m.Figure, Family: family, P: m.P, Significant: m.Significant,
		Call: m.Call, Ratio: &m.Ratio}, first(
		m.Figure, slices.ContainsFunc(samples, func(s sample) bool { return s.many })), p, best, same})
}

func (c *check) about(what string, got, want, slack float64) {
	c.Helper()
	c.compared++
	if !(math.Abs(got-want) <= slack+1e-9*math.Abs(want)) {
		c.Errorf("%s is %v in the report, and %v worked out again", what, got, want)
	}
}

// places are how many lie below each value of both samples, and how many above.
func places(x, y []float64) (below, above string) {
	all := append(slices.Clone(x), y...)
	lower, higher := make([]int, len(all)), make([]int, len(all))
	for i, v := range all {
		for _, w := range all {
			if w < v {
				lower[i]++
			}
			if w > v {
				higher[i]++
			}
		}
	}
	return fmt.Sprint(len(x), lower), fmt.Sprint(len(x), higher)
}

// together is Mann and Whitney's p over cells: in each the first sample is drawn in every way, and how often its values
// lie above the others', ties by half, is added up over the cells.
func together(samples []sample) float64 {
	ways, seen := map[int]float64{0: 1}, 0
	for _, s := range samples {
		all := append(slices.Clone(s.x), s.y...)
		rank := make([]int, len(all)) // doubled: ties have halves
		for i, v := range all {
			for _, w := range all {
				rank[i] += 1 + cmp.Compare(v, w)
			}
		}
		for _, r := range rank[:len(s.x)] {
			seen += r
		}
		of := map[int]float64{}
		var draw func(from, left, sum int)
		draw = func(from, left, sum int) {
			if left == 0 {
				of[sum]++
				return
			}
			for i := from; i+left <= len(rank); i++ {
				draw(i+1, left-1, sum+rank[i])
			}
		}
		draw(0, len(s.x), 0)
		next := map[int]float64{}
		for sum, n := range ways {
			for more, m := range of {
				next[sum+more] += n * m
			}
		}
		ways = next
	}
	below, above, total := 0.0, 0.0, 0.0
	for sum, n := range ways {
		total += n
		if sum <= seen {
			below += n
		}
		if sum >= seen {
			above += n
		}
	}
	return min(1, 2*min(below, above)/total)
}

// drawn holds the interval of a mean against launches that are drawn anew here, from other random numbers. A report's
// ends are themselves of 1,000 draws in 500 pairs, beyond each of which lie 25: were the draws of a pair always the
// same, 13 pairs would do. With which share of all draws beyond an end that happens but once in 2,000 is the tolerance;
// that of the draws here is four times their deviation.
func (c *check) drawn(what string, got ends, samples []sample) {
	drawn := kept(c.Work, fmt.Sprint("drawn ", samples), func() []float64 { return c.redrawn(samples) })
	under := sort.SearchFloat64s(drawn, got.Lo-last)
	over := len(drawn) - sort.SearchFloat64s(drawn, math.Nextafter(got.Hi+last, math.Inf(1)))
	bounds := kept(c.Work, "shares", func() [2]float64 {
		least,
			most := shares(500, 13)
		return [2]float64{least, most}
	})
	least, most := bounds[0], bounds[1]
	for name, n := range map[string]int{"below": under, "above": over} {
		c.compared++
		times := float64(len(drawn))
		share, from, to := float64(n)/times, least-4*math.Sqrt(least/times), most+4*math.Sqrt(most/times)
		if share < from || share > to {
			c.Errorf("%s: of means drawn again %.2g %% lie %s the interval %v to %v, which should be %.2g to %.2g %%",
				what, 100*share, name, got.Lo, got.Hi,
				100*from, 100*to)
		}
	}
}

// redrawn are geometric means of medians, or of their ratios, rising: each median by its law, which a test holds
// against launches drawn one by one.
func (c *check) redrawn(samples []sample) []float64 {
	const times = 8000
	random := rand.New(rand.NewPCG(20, 26))
	logs := make([]float64, times)
	add := func(values []float64, sign float64) {
		if len(values) == 0 {
			return // a mean of one side alone
		}
		law := c.medians(values)
		log, upTo, sum := make([]float64, len(law)), make([]float64, len(law)), 0.0
		for i, v := range law {
			sum += v.chance
			log[i], upTo[i] = sign*math.Log(v.value)/float64(len(samples)), sum
		}
		for n := range logs {
			logs[n] += log[min(sort.SearchFloat64s(upTo, random.Float64()), len(log)-1)]
		}
	}
	for _, s := range samples {
		add(s.x, 1)
		add(s.y, -1)
	}
	for n := range logs {
		logs[n] = math.Exp(logs[n])
	}
	slices.Sort(logs)
	return logs
}

// shares are the chances with which so many of n come to pass at least once in 2,000 times, and at most all times but
// once in 2,000.
func shares(n, k int) (least, most float64) {
	for p := 0.0005; p < 0.2; p += 0.0005 {
		fewer := 0.0
		for i := range k {
			fewer += binomial(n, i, p)
		}
		if 1-fewer < 0.0005 {
			least = p
		}
		if fewer > 0.0005 {
			most = p
		}
	}
	return least, most
}

// groups works out the means of one side's medians.
func (c *check) groups(inf inference) {
	for _, g := range inf.Groups {
		if g.Refused != "" {
			continue
		}
		for _, f := range g.Figures {
			var samples []sample
			logs, enough := 0.0, true
			bases := map[bool]bool{} // whether there was a process before the load
			for i, cell := range c.cells {
				var words []string
				for _, name := range inf.Statistics.By {
					words = append(words, name+" "+c.field(inf, i, name))
				}
				of := cell.Figures[f.Figure]
				if strings.Join(words, ", ") != g.Name || c.res.Cells[i].Run != g.Run || len(of.Values) == 0 ||
					of.Median <= 0 {
					continue
				}
				bases[len(cell.Figures["baseline_pss"].Values) > 0] = true
				samples, logs = append(samples, sample{x: of.Values}), logs+math.Log(of.Median)
				enough = enough && len(of.Values) >= few && slices.Min(of.Values) > 0 && len(of.Values) <= cell.opened()
			}
			what := "mean of " + f.Figure + " of " + g.Name
			if f.Figure == "memory_increase" && len(bases) > 1 {
				samples = nil // the whole of one, and of the other what came on top
			}
			c.same(what+", cells", float64(f.Cells), float64(len(samples)))
			if (f.Mean == nil) != (len(samples) == 0) {
				c.Errorf("%s is %v in the report, of %d cells worked out again", what, f.Mean, len(samples))
			}
			if f.Mean == nil || len(samples) == 0 {
				continue
			}
			c.about(what, *f.Mean, math.Exp(logs/float64(len(samples))), last)
			if c.compared++; (f.Interval != nil) != enough {
				c.Errorf("%s: the interval is %v in the report; worked out again there is one: %v", what, f.Interval,
					enough)
			} else if enough {
				c.drawn(what, *f.Interval, samples)
			}
		}
	}
}
