package growth

import (
	"fmt"
	"math"
	"slices"
	"time"

	"llmparity/compare/evidence"
	"llmparity/compare/memory"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// track is a quantity of one launch over time, in MiB.
type track struct {
	name, title, method, blind string
	// every is the sampling interval in nanoseconds; 0: the source tells by itself, with tokens, on the clock that
	// tokens are timed by.
	every    int64
	readings []instant
	back     int // readings left out because their times go backwards
	all      int // readings, those left out too
}

// instant is a reading's value and when it was: the middle of the read.
type instant struct {
	ns int64
	v  float64
}

// Within has a cell's series over tokens within launches; nil if unknown.
func Within(c *memory.Cell, run *record.Run) (*OverTokens, *Growth) {
	followed := map[*record.Attempt][]track{}
	for _, a := range c.Counted {
		followed[a] = tracks(a)
	}
	return overTokens(c.Spec, c.Counted, followed), grow(c, run, followed)
}

// stepsToGap is how many sampling intervals may lie between two readings for a line between them to be believed.
const stepsToGap = 3

// tracks are what there is to follow of a launch, in the order in which it is shown. Nothing is read of a launch
// without tokens.
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

// gatherer puts the rows of a launch into tracks, each row looked at once.
type gatherer struct {
	a          *record.Attempt
	begin, end int64 // of the measure phase, with the reading at its edge
	of         map[string]*track
	order      []string
}

func (g *gatherer) track(name, title, method string, every int64) *track {
	if t := g.of[name]; t != nil {
		return t
	}
	t := &track{
		name:   name,
		title:  title,
		method: method,
		every:  every,
		blind:  evidence.Blind([]*record.Attempt{g.a}, method),
	}
	g.of[name], g.order = t, append(g.order, name)
	return t
}

// add keeps a reading that is near enough to the measurement for a line into it.
func (g *gatherer) add(t *track, ns, took int64, v float64) {
	at := ns - max(took, 0)/2
	near := stepsToGap * t.every
	if !size(v) || at < g.begin-near || at > g.end+near {
		return
	}
	t.all++
	if n := len(t.readings); n > 0 && at <= t.readings[n-1].ns {
		if at < t.readings[n-1].ns {
			t.back++
		}
		return
	}
	t.readings = append(t.readings, instant{at, v})
}

// shortest is the sampling interval of a method.
func (g *gatherer) shortest(method string) int64 {
	every := int64(0)
	for _, s := range g.a.Sources {
		if s.Method == method {
			every = max(every, int64(s.Every))
		}
	}
	return every
}

func (g *gatherer) totals() {
	pss, rss := g.track(figure.TotalPSS, "total PSS", record.MethodSmapsRollup, g.shortest(record.MethodSmapsRollup)),
		memory.RSSMethod(g.a)
	sum := g.track("rss_sum", "RSS sum", rss, g.shortest(rss))
	for _, t := range g.a.Totals {
		if t.Method == record.MethodSmapsRollup {
			g.add(pss, t.NS, t.ReadNS, t.PSS)
		}
		if t.Method == rss {
			g.add(sum, t.NS, t.ReadNS, t.RSS)
		}
	}
}

// samples follows the processes that compute, each by its RSS.
func (g *gatherer) samples() {
	of := map[int]*track{}
	for _, id := range g.computing() {
		s := g.a.Sources[id]
		of[id] = g.track(fmt.Sprintf("rss_%d", id), s.Role+" RSS", s.Method, int64(s.Every))
	}
	if len(of) == 0 {
		return
	}
	for _, s := range g.a.Samples {
		if t := of[s.Source]; t != nil {
			g.add(t, s.NS, s.ReadNS, s.RSS)
		}
	}
	seen := map[string]int{}
	for _, id := range g.computing() { // names of roles are the same in every launch, numbers of sources are not
		t := of[id]
		role := g.a.Sources[id].Role
		seen[role]++
		t.name = "rss:" + role
		if seen[role] > 1 {
			t.name, t.title = fmt.Sprintf("%s#%d", t.name, seen[role]), fmt.Sprintf("%s RSS #%d", role, seen[role])
		}
	}
}

// computing are the sources of those processes that an engine computes in, by their RSS: of a browser the page's and
// the GPU's. There are none where there is one process: its RSS is the sum.
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

// followed are the metrics that are worth following, in bytes, by method and name.
func followed() []memory.Part {
	out := slices.DeleteFunc(memory.Parted(), func(p memory.Part) bool {
		return !slices.Contains([]string{figure.Ledger, figure.KVReserved}, p.Name)
	})
	return append(out, memory.Part{Name: figure.JSHeap, Title: "JavaScript heap", Method: "performance_metrics",
		Value: "js_heap_used_bytes"})
}

func (g *gatherer) metrics() {
	parts := map[string]memory.Part{} // by the metric's name
	for _, p := range followed() {
		parts[p.Value] = p
	}
	sources := map[int]bool{}
	for id, s := range g.a.Sources {
		if slices.ContainsFunc(followed(), func(p memory.Part) bool { return p.Method == s.Method }) {
			sources[id] = true
		}
	}
	var rows []record.MetricRow
	for _, m := range g.a.Metrics {
		near := m.NS >= g.begin-int64(time.Millisecond) && m.NS <= g.end
		if near && sources[m.Source] && parts[m.Name].Method == g.a.Sources[m.Source].Method {
			rows = append(rows, m)
		}
	}
	// What is told with tokens is written when it arrives, which may be after a reading that was taken later.
	slices.SortStableFunc(rows, func(a, b record.MetricRow) int { return int(max(min(a.NS-b.NS, 1), -1)) })
	for _, p := range followed() {
		ids := map[int]bool{}
		for _, m := range rows {
			if m.Name == p.Value {
				ids[m.Source] = true
			}
		}
		if len(ids) > 1 {
			continue // several isolates, which are not read at one time
		}
		for _, m := range rows {
			if m.Name == p.Value {
				g.add(g.track(p.Name, p.Title, p.Method, int64(g.a.Sources[m.Source].Every)), m.NS, m.ReadNS,
					evidence.Mebi(m.Value))
			}
		}
	}
}

// size tells whether MiB can be one of memory: a number, and below 2^60 bytes. A spoilt record may hold anything.
func size(v float64) bool { return math.Abs(v) <= 1<<40 }

// gap is the longest time between two readings that a line is drawn over; of a source that tells by itself, by what is
// usual of it.
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

// disordered says that too many readings have times that go backwards for their order to be known; empty where it is.
func (t track) disordered() string {
	if t.back*10 <= t.all {
		return ""
	}
	return fmt.Sprintf("the times of %d of %d readings of %s go backwards; when they were taken is not known", t.back, t.all,
		t.title)
}

// sparse reports whether a source is read at phase edges only.
func (t track) sparse() bool { return t.every == 0 && len(t.readings) < minReadings }

// minReadings is how many readings it takes within a request to follow it.
const minReadings = 5

// at is the value at a time: on the line between the two readings around it. NaN before the first, after the last, and
// in a gap.
func (t track) at(ns, gap int64) float64 {
	i, exact := slices.BinarySearchFunc(
		t.readings, ns, func(r instant, ns int64) int { return int(max(min(r.ns-ns, 1), -1)) })
	switch {
	case exact:
		return t.readings[i].v
	case i == 0 || i == len(t.readings) || t.readings[i].ns-t.readings[i-1].ns > gap:
		return math.NaN()
	}
	a, b := t.readings[i-1], t.readings[i]
	return a.v + (b.v-a.v)*float64(ns-a.ns)/float64(b.ns-a.ns)
}
