package recount

import (
	"math"
	"slices"
	"sort"
)

// Figure is one of a cell, over its launches.
type Figure struct {
	Values   []float64
	Median   float64
	Lo, Hi   float64 // of the interval; NaN where launches are too few
	Holds    float64 // how likely that is to have the true median in it
	launches []int   // each value's
}

// Cell has what was worked out again, by the names of the result's figures.
type Cell struct {
	ID      int
	Engine  string
	Counted int
	Figures map[string]Figure
	load    map[string]Figure // of all requests of a traffic together; nil: they come one at a time
	kinds   map[string]map[string]Figure
	ids     [][]int // of the measured requests
	texts   []string
	prompts [][]int
	opener  map[int]int // the attempt that opened the launch of each that counts
	stop    *stop
	stolen  []float64 // of each launch that counts, in percent of the processors' time; nil where one does not tell
	outside bool      // programs outside share much of its memory
}

// stop is why a cell was not repeated any more, as it was recorded.
type stop struct {
	Cell, Repetitions, Looks, Look int
	Figure                         string
	Level, Confidence, Percent     float64
	Median                         float64
	Low, High                      *float64
	Narrow                         bool
}

// conclude is a figure's interval at the stop's level: of a cell that was looked at several times, each look has its
// share of the chance to err.
func (c *Cell) conclude(f *Figure) {
	if s := c.stop; s == nil || len(f.Values) == 0 {
		f.conclude()
	} else {
		f.concludeAt(s.Confidence)
		f.Holds = max(s.Level, 1-float64(s.Looks)*(1-f.Holds))
	}
}

// perLaunch is a figure's median in each launch: repetitions in one are not independent.
func (c *Cell) perLaunch(name string) []float64 {
	f := c.Figures[name]
	of := map[int][]float64{}
	var order []int
	for i, v := range f.Values {
		l := c.opener[f.launches[i]]
		if len(of[l]) == 0 {
			order = append(order, l)
		}
		of[l] = append(of[l], v)
	}
	var out []float64
	for _, l := range order {
		out = append(out, middle(of[l]))
	}
	return out
}

// opened is how many launches there were of a cell.
func (c *Cell) opened() int {
	all := map[int]bool{}
	for _, l := range c.opener {
		all[l] = true
	}
	return len(all)
}

// Run is a folder with what was worked out again of it, in the order of its cells.
type Run struct{ Cells []Cell }

// figures works a folder out.
func (f *folder) figures() *Run {
	r := &Run{}
	for _, id := range f.cells {
		c := Cell{ID: id, Engine: f.engines[id], Figures: map[string]Figure{}, opener: map[int]int{}}
		if s := f.stops[id]; s != nil && s.Looks > 0 && s.Confidence > 0 && s.Confidence < 1 {
			c.stop = s
		}
		var counted []*attempt
		for _, a := range f.attempts {
			if a.cell == id && a.counted {
				counted = append(counted, a)
				c.opener[a.id] = a.opener
				c.opener[a.opener] = a.opener
			}
		}
		c.Counted, c.stolen, c.outside = len(counted), f.stolen(counted), sharedOutside(counted)
		c.memory(f, counted)
		c.times(f.styles[id], counted)
		if t := f.traffic[id]; t != nil {
			c.load, c.kinds = t.again(&c, counted, "", true), map[string]map[string]Figure{}
			for _, a := range counted {
				for _, r := range a.measured() {
					if r.Kind != "" && c.kinds[r.Kind] == nil {
						c.kinds[r.Kind] = t.again(&c, counted, r.Kind, false)
					}
				}
			}
			for name, figure := range c.load {
				if len(figure.Values) > 0 { // ratios are of some of them
					c.Figures[name] = figure
				}
			}
		}
		for name, figure := range c.Figures {
			c.conclude(&figure)
			c.Figures[name] = figure
		}
		r.Cells = append(r.Cells, c)
	}
	return r
}

func (c *Cell) add(name string, launch int, v float64) {
	f := c.Figures[name]
	if !math.IsNaN(v) {
		f.Values, f.launches = append(f.Values, math.Round(v*1e6)/1e6), append(f.launches, launch)
	}
	c.Figures[name] = f
}

// memory is a value a launch: the load and the warm-up lie in the attempt that opened it.
func (c *Cell) memory(f *folder, counted []*attempt) {
	var order []int
	members := map[int][]*attempt{}
	for _, a := range counted {
		if members[a.opener] == nil {
			order = append(order, a.opener)
		}
		members[a.opener] = append(members[a.opener], a)
	}
	for _, l := range order {
		opener := f.by[l]
		pss, uss, rss := math.NaN(), math.NaN(), math.NaN()
		for _, a := range members[l] {
			for _, t := range a.totals {
				pss, uss = higher(pss, t.pss), higher(uss, t.uss)
				if t.method != "smaps_rollup" {
					rss = higher(rss, t.rss)
				}
			}
		}
		baseline := middle(opener.in("baseline", "smaps_rollup"))
		c.add("peak_pss", l, pss)
		c.add("peak_uss", l, uss)
		c.add("peak_rss_sum", l, rss)
		c.add("baseline_pss", l, baseline)
		if opener.born() {
			c.add("memory_increase", l, pss-baseline)
		} else {
			c.add("memory_increase", l, pss)
		}
		if warm := opener.in("warmup", "smaps_rollup"); len(warm) > 0 {
			c.add("post_warmup_pss", l, warm[len(warm)-1])
		}
	}
	if len(c.Figures["peak_pss"].Values) > 0 {
		return
	}
	for i, l := range c.Figures["peak_rss_sum"].launches { // nobody may read PSS
		opener, rss := f.by[l], c.Figures["peak_rss_sum"].Values[i]
		before, warm := opener.summed("baseline"), opener.summed("warmup")
		c.add("baseline_rss_sum", l, middle(before))
		if len(warm) > 0 {
			c.add("post_warmup_rss_sum", l, warm[len(warm)-1])
		}
		if opener.born() {
			rss -= middle(before)
		}
		c.add("memory_increase_rss_sum", l, rss)
	}
}

// summed are the sums of RSS from a phase's begin to the next one's.
func (a *attempt) summed(phase string) []float64 {
	var out []float64
	for i, p := range a.phases {
		for _, t := range a.totals {
			if p.Name == phase && t.method != "smaps_rollup" && t.method != "vm_hwm" && t.at >= p.Begin &&
				(i+1 == len(a.phases) || t.at < a.phases[i+1].Begin) {
				out = append(out, t.rss)
			}
		}
	}
	return out
}

func higher(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// in are the PSS totals from a phase's begin to the next one's.
func (a *attempt) in(phase, method string) []float64 {
	var out []float64
	for i, p := range a.phases {
		if p.Name != phase {
			continue
		}
		end := int64(math.MaxInt64)
		if i+1 < len(a.phases) {
			end = a.phases[i+1].Begin
		}
		for _, t := range a.totals {
			if t.method == method && t.at >= p.Begin && t.at < end && !math.IsNaN(t.pss) {
				out = append(out, t.pss)
			}
		}
		break
	}
	return out
}

// born tells whether a process was there before the load.
func (a *attempt) born() bool {
	for _, p := range a.phases {
		if p.Name == "load" {
			for _, t := range a.totals {
				if t.at < p.Begin {
					return true
				}
			}
			return false
		}
	}
	return true
}

// times are a value an attempt: the median over its measured requests.
func (c *Cell) times(s style, counted []*attempt) {
	for _, a := range counted {
		loads, called := a.phases, "load"
		if s.perGeneration {
			loads, called = a.stages, "model"
		}
		for _, p := range loads {
			if p.Name == called {
				c.add("load_time", a.id, float64(p.End-p.Begin)/1e6)
			}
		}
		for _, r := range a.alike() {
			c.ids, c.texts, c.prompts = append(c.ids, r.ids), append(c.texts, r.Text), append(c.prompts, r.PromptIDs)
		}
		of, asked := map[string][]float64{}, s.isolation != "launch" || a.opener != a.id // for that prompt before
		for _, r := range a.requests {
			if r.Phase != "measure" {
				continue
			}
			figures := r.figures()
			if len(of["latency"]) > 0 {
				asked = true
			}
			if s.cache == "on" && (r.Cached == nil || *r.Cached < 0) && asked {
				delete(figures, "prefill_tps") // nobody tells how much of it was computed
			}
			for name, v := range figures {
				of[name] = append(of[name], v)
			}
		}
		for name, values := range of {
			c.add(name, a.id, middle(values))
		}
	}
}

// alike are the measured requests that ask for what the one asks that is due first, which comes first.
func (a *attempt) alike() []*request {
	all := a.measured()
	sort.SliceStable(all, func(i, j int) bool {
		x, y := all[i], all[j]
		if x.due() != y.due() {
			return x.due() < y.due()
		}
		return x.Client < y.Client
	})
	var out []*request
	for _, r := range all {
		if r.Kind == all[0].Kind && r.Turn == all[0].Turn && slices.Equal(r.PromptIDs, all[0].PromptIDs) {
			out = append(out, r)
		}
	}
	return out
}

// figures of a request. Tokens of one piece of text, which an engine counts, are of all pieces taken for alike; where
// many came in few pieces it is not known when each was there.
func (r *request) figures() map[string]float64 {
	out := map[string]float64{"latency": float64(r.Returned-r.due()) / 1e6, "tokens": float64(len(r.times))}
	if r.Generated > 0 {
		out["tokens"] = float64(r.Generated)
	}
	prompt := max(len(r.PromptIDs), r.Prompted)
	if prompt > 0 {
		out["prompt_tokens"] = float64(prompt)
	}
	n := len(r.times)
	if n > 0 {
		out["ttft"] = float64(r.times[0]-r.due()) / 1e6
	}
	for _, s := range r.spans {
		length := float64(s.End-s.Begin) / 1e9
		switch {
		case s.Name == "prefill" && length > 0 && prompt > 0:
			computed := prompt
			if r.Cached != nil {
				computed -= max(0, *r.Cached)
			}
			if computed > 0 {
				out["prefill_tps"] = float64(computed) / length
			}
		case s.Name == "decode" && n > 1 && r.times[n-1] > r.times[0]:
			chunks, times := r.chunks()
			if 10*n >= 9*r.Generated {
				seconds := float64(r.times[n-1]-r.times[0]) / 1e9
				out["decode_tps"] = out["tokens"] / float64(n) * float64(n-chunks[0]) / seconds
			}
			var gaps []float64
			for i := 1; i < len(chunks); i++ {
				for range chunks[i] {
					gaps = append(gaps, float64(times[i]-times[i-1])/1e6/float64(chunks[i]))
				}
			}
			sort.Float64s(gaps)
			out["inter_token_latency_p50"] = middle(gaps)
			rank := (99*len(gaps) + 99) / 100 // the nearest rank, from 1
			out["inter_token_latency_p99"] = gaps[rank-1]
		}
	}
	return out
}

// chunks are the tokens by the times at which they came: those of one time came together, and share the time since the
// ones before.
func (r *request) chunks() (sizes []int, times []int64) {
	for i, at := range r.times {
		if i == 0 || at != r.times[i-1] {
			sizes, times = append(sizes, 0), append(times, at)
		}
		sizes[len(sizes)-1]++
	}
	return sizes, times
}

// middle is the median; NaN of nothing.
func middle(values []float64) float64 {
	values = slices.Clone(values)
	sort.Float64s(values)
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}

// conclude is the median and the shortest stretch of order statistics that has it in it with 95 % by the binomial
// itself; of several as short the most likely one, and of these the lowest.
func (f *Figure) conclude() { f.concludeAt(0.95) }

func (f *Figure) concludeAt(level float64) {
	n := len(f.Values)
	f.Median, f.Lo, f.Hi, f.Holds = middle(f.Values), math.NaN(), math.NaN(), math.NaN()
	sorted := slices.Clone(f.Values)
	sort.Float64s(sorted)
	chances := make([]float64, n+1) // that so many values lie below the true median
	for k := range chances {
		chances[k] = 1
		for i := range k {
			chances[k] *= float64(n-i) / float64(i+1)
		}
		chances[k] /= math.Pow(2, float64(n))
	}
	for wide := 1; wide <= n+1; wide++ {
		best, from := 0.0, 0
		for l := 0; l+wide <= n+1; l++ {
			sum := 0.0
			for _, p := range chances[l : l+wide] {
				sum += p
			}
			if sum > best+1e-12 {
				best, from = sum, l
			}
		}
		if best >= level {
			if from > 0 && from+wide <= n {
				f.Lo, f.Hi, f.Holds = sorted[from-1], sorted[from+wide-1], best
			}
			return
		}
	}
}

// chance is Mann and Whitney's p by going through every way to draw the first sample: twice the smaller tail.
func chance(x, y []float64) float64 {
	all := append(slices.Clone(x), y...)
	ranks := make([]float64, len(all))
	for i, v := range all {
		for _, w := range all {
			switch {
			case w < v:
				ranks[i]++
			case w == v:
				ranks[i] += 0.5
			}
		}
	}
	seen := 0.0
	for _, r := range ranks[:len(x)] {
		seen += r
	}
	below, above, ways := 0, 0, 0
	var draw func(from, left int, sum float64)
	draw = func(from, left int, sum float64) {
		if left == 0 {
			ways++
			if sum <= seen+1e-9 {
				below++
			}
			if sum >= seen-1e-9 {
				above++
			}
			return
		}
		for i := from; i+left <= len(ranks); i++ {
			draw(i+1, left-1, sum+ranks[i])
		}
	}
	draw(0, len(x), 0)
	return min(1, 2*float64(min(below, above))/float64(ways))
}
