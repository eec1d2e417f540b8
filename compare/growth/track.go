package growth

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// track is a quantity of one launch over time, in MiB.
type track struct {
	name, title, method, blind string
	// every is the sampling interval in nanoseconds; 0: readings come with tokens, by the clock of tokens
	every    int64
	readings []instant
}

// instant is a reading's value and time: the middle of the read.
type instant struct {
	ns int64
	v  float64
}

// Within computes a cell's memory over tokens and its growth within launches; nil if unknown.
func Within(c *memory.Footprint, run *record.Run) (*OverTokens, *Growth) {
	followed := map[*record.Attempt][]track{}
	for _, a := range c.Counted {
		followed[a] = tracks(a)
	}
	return overTokens(c.Spec, c.Counted, followed), grow(c, run, followed)
}

// stepsToGap is the most sampling intervals between two readings that are interpolated.
const stepsToGap = 3

// tracks are the quantities of a launch over time, in the order of reports; nil without tokens.
func tracks(a *record.Attempt) []track {
	begin, end, ok := evidence.Reach(a, record.Measure)
	if !ok || len(a.Measured()) == 0 {
		return nil
	}
	g := &gatherer{a: a, begin: begin, end: end, of: map[string]*track{}}
	g.totals()
	g.samples()
	g.metrics()
	out := []track{}
	for _, name := range g.order {
		if t := g.of[name]; len(t.readings) > 0 {
			out = append(out, *t)
		}
	}
	return out
}

// gatherer sorts the rows of a launch into tracks in one pass.
type gatherer struct {
	a          *record.Attempt
	begin, end int64 // of the measure phase, with the readings at its edges
	of         map[string]*track
	order      []string
}

func (g *gatherer) track(name, title, method string, every int64) *track {
	if t := g.of[name]; t != nil {
		return t
	}
	t := &track{name: name, title: title, method: method, every: every,
		blind: evidence.Blind([]*record.Attempt{g.a}, method)}
	g.of[name], g.order = t, append(g.order, name)
	return t
}

// add adds a reading that is close enough to the measure phase for interpolation into it.
func (g *gatherer) add(t *track, ns, took int64, v float64) {
	at := ns - max(took, 0)/2
	near := stepsToGap * t.every
	n := len(t.readings)
	if !math.IsNaN(v) && at >= g.begin-near && at <= g.end+near && (n == 0 || at > t.readings[n-1].ns) {
		t.readings = append(t.readings, instant{at, v})
	}
}

// interval is the longest sampling interval of a method's sources.
func (g *gatherer) interval(method string) int64 {
	every := int64(0)
	for _, s := range g.a.Sources {
		if s.Method == method {
			every = max(every, int64(s.Every))
		}
	}
	return every
}

func (g *gatherer) totals() {
	pss, rss := g.track(figure.TotalPSS, "total PSS", record.MethodSmapsRollup, g.interval(record.MethodSmapsRollup)),
		memory.RSSMethod(g.a)
	sum := g.track("rss_sum", "RSS sum", rss, g.interval(rss))
	for _, t := range g.a.Totals {
		if t.Method == record.MethodSmapsRollup {
			g.add(pss, t.NS, t.ReadNS, t.PSS)
		}
		if t.Method == rss {
			g.add(sum, t.NS, t.ReadNS, t.RSS)
		}
	}
}

// samples adds the RSS of each process that computes. Names have roles, because numbers of sources differ between
// launches.
func (g *gatherer) samples() {
	of, seen := map[int]*track{}, map[string]int{}
	for _, id := range g.computing() {
		s := g.a.Sources[id]
		name, title := "rss:"+s.Role, s.Role+" RSS"
		if seen[s.Role]++; seen[s.Role] > 1 {
			name, title = fmt.Sprintf("%s#%d", name, seen[s.Role]), fmt.Sprintf("%s #%d", title, seen[s.Role])
		}
		of[id] = g.track(name, title, s.Method, int64(s.Every))
	}
	for _, s := range g.a.Samples {
		if t := of[s.Source]; t != nil {
			g.add(t, s.NS, s.ReadNS, s.RSS)
		}
	}
}

// computing are the RSS sources of the processes that compute: in a browser those of the page and the GPU. A single
// process has none: its RSS is the sum.
func (g *gatherer) computing() []int {
	method := memory.RSSMethod(g.a)
	var all, page []int
	for id, s := range g.a.Sources {
		if s.Method != method {
			continue
		}
		all = append(all, id)
		if s.Role == "renderer" || s.Role == "gpu-process" {
			page = append(page, id)
		}
	}
	if len(page) > 0 {
		all = page
	} else if len(all) == 1 {
		return nil
	}
	slices.Sort(all)
	return all
}

// followed are the metrics that become tracks, in bytes, by method and name.
func followed() []memory.Part {
	return []memory.Part{memory.PartOf(figure.Ledger), memory.PartOf(figure.KVReserved), {Name: figure.JSHeap,
		Title: "JavaScript heap", Method: "performance_metrics", Value: "js_heap_used_bytes"}}
}

func (g *gatherer) metrics() {
	for _, p := range followed() {
		var rows []record.MetricRow
		for _, m := range g.a.Metrics {
			near := m.NS >= g.begin-int64(time.Millisecond) && m.NS <= g.end
			if near && m.Name == p.Value && g.a.Sources[m.Source].Method == p.Method {
				rows = append(rows, m)
			}
		}
		if slices.ContainsFunc(rows, func(m record.MetricRow) bool { return m.Source != rows[0].Source }) {
			continue // several isolates, which are read at different times
		}
		// Readings with tokens are written when they arrive, which may be after a later reading.
		slices.SortStableFunc(rows, func(a, b record.MetricRow) int { return cmp.Compare(a.NS, b.NS) })
		for _, m := range rows {
			g.add(g.track(p.Name, p.Title, p.Method, int64(g.a.Sources[m.Source].Every)), m.NS, m.ReadNS,
				evidence.Mebi(m.Value))
		}
	}
}

// gap is the longest time between two readings that is interpolated; without a sampling interval, by the median of such
// times.
func (t track) gap() int64 {
	if t.every > 0 {
		return stepsToGap * t.every
	}
	steps := make([]float64, 0, len(t.readings))
	for i := 1; i < len(t.readings); i++ {
		steps = append(steps, float64(t.readings[i].ns-t.readings[i-1].ns))
	}
	if len(steps) == 0 {
		return 0
	}
	return int64(stepsToGap * stats.Median(steps))
}

// sparse reports whether a source is read at phase edges only.
func (t track) sparse() bool { return t.every == 0 && len(t.readings) < minReadings }

// minReadings is the fewest readings within a request for a slope.
const minReadings = 5

// at interpolates the value at a time; NaN before the first reading, after the last, and in a gap.
func (t track) at(ns, gap int64) float64 {
	i, exact := slices.BinarySearchFunc(t.readings, ns, func(r instant, ns int64) int { return cmp.Compare(r.ns, ns) })
	switch {
	case exact:
		return t.readings[i].v
	case i == 0 || i == len(t.readings) || t.readings[i].ns-t.readings[i-1].ns > gap:
		return math.NaN()
	}
	a, b := t.readings[i-1], t.readings[i]
	return a.v + (b.v-a.v)*float64(ns-a.ns)/float64(b.ns-a.ns)
}
