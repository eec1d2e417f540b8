package memory

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
)

// Shown are the sizes of one launch, in MiB, rounded so that the parts of each whole add up to it: medians over
// launches do not. Tables, charts and texts that have parts beside their whole take sizes from here.
type Shown struct {
	Launch   int // of the attempt that opened it; 0: no launch counts
	decimals int
	sizes    map[string]float64
	exact    map[string]float64
}

// closest is the launch whose parts are shown: of those with the most readings, the one whose peak is nearest to the
// median; of several, the one whose whole is, then the earliest.
func (c *Footprint) closest(all []evidence.Launch) int {
	peak, total := PointsOf(c.Figure).Peak, c.Parts.Component(figure.TotalMemory).Figure
	lists := [][]evidence.Figure{c.Figures}
	if b := c.Breakdown; b != nil {
		lists = append(lists, b.Load, b.Measure, b.Retained)
	}
	if c.Parts != nil {
		for _, x := range slices.Concat(c.Parts.Components, c.Parts.Beyond) {
			lists = append(lists, []evidence.Figure{x.Figure})
		}
	}
	missing := func(launch int) int {
		n := 0
		for _, f := range slices.Concat(lists...) {
			if f.Unit == "MiB" && f.Known() && math.IsNaN(f.Value(launch)) {
				n++
			}
		}
		return n
	}
	far := func(f evidence.Figure, launch int) float64 {
		if v := math.Abs(f.Value(launch) - f.Center()); !math.IsNaN(v) {
			return v
		}
		return math.Inf(1)
	}
	if len(all) == 0 {
		return 0
	}
	return slices.MinFunc(all, func(a, b evidence.Launch) int {
		return cmp.Or(cmp.Compare(missing(a.ID), missing(b.ID)),
			cmp.Compare(far(peak, a.ID), far(peak, b.ID)), cmp.Compare(far(total, a.ID), far(total, b.ID)))
	}).ID
}

// hundredths is the size in MiB from which hundredths are shown; below it, thousandths.
const hundredths = 100

func decimals(whole float64) int {
	if math.Abs(whole) >= hundredths {
		return 2
	}
	return 3
}

// Within are the parts that add up to the increase, and BeyondParts those that add up to BrowserShare.
func Within() []string {
	return []string{figure.ModelWeights, figure.KVCache, figure.Activations, figure.MultiGPUOverhead, figure.HostParts,
		figure.FrameworkOverhead}
}

// BeyondParts lists the parts of BrowserShare.
func BeyondParts() []string {
	rows := figure.Names(figure.Rows(func(r *figure.Row) bool { return r.Beyond }))
	return rows[1 : len(rows)-1]
}

// show rounds the sizes of a launch from the peak down: each whole is split as it is shown.
func (c *Footprint) show(launch int) Shown {
	s := Shown{Launch: launch, sizes: map[string]float64{}, exact: map[string]float64{}}
	points := PointsOf(c.Figure)
	s.decimals = decimals(points.Peak.Value(launch))
	s.put(points.Peak.Name, points.Peak.Value(launch))
	s.put(points.Warm.Name, points.Warm.Value(launch))
	s.split(points.Peak.Name, points.Baseline, points.Increase)
	if c.Parts == nil {
		return s
	}
	part := func(name string) evidence.Figure { return c.Parts.Component(name).Figure }
	s.put(figure.TotalMemory, part(figure.TotalMemory).Value(launch))
	s.put(figure.MemoryIncrease, part(figure.MemoryIncrease).Value(launch))
	s.put(figure.KVCacheUsed, part(figure.KVCacheUsed).Value(launch))
	if c.Parts.Of == points.Of { // the same, by other names
		s.put(figure.TotalMemory, s.Size(points.Peak.Name))
		s.put(figure.MemoryIncrease, s.Size(points.Increase.Name))
	}
	parts := func(names ...string) (out []evidence.Figure) {
		for _, name := range names {
			out = append(out, part(name))
		}
		return out
	}
	s.split(figure.MemoryIncrease, parts(Within()...)...)
	s.split(figure.FrameworkOverhead, parts(figure.BrowserShare, figure.EverythingElse)...)
	s.split(figure.BrowserShare, parts(BeyondParts()...)...)
	return s
}

// put rounds a size that is not split further.
func (s *Shown) put(name string, v float64) {
	if !math.IsNaN(v) {
		s.sizes[name], s.exact[name] = stats.Round(v, s.decimals), v
	}
}

// split rounds the parts of a whole that is rounded already.
func (s *Shown) split(whole string, parts ...evidence.Figure) {
	var values []float64
	for _, f := range parts {
		values = append(values, f.Value(s.Launch))
	}
	for i, v := range stats.Apportioned(s.Size(whole), values, s.decimals) {
		s.put(parts[i].Name, v)
		s.exact[parts[i].Name] = values[i]
	}
}

// Size is a size as it is shown; NaN where it is unknown.
func (s Shown) Size(name string) float64 {
	if v, ok := s.sizes[name]; ok {
		return v
	}
	return math.NaN()
}

// Known reports whether the launch has a size.
func (s Shown) Known(name string) bool { return !math.IsNaN(s.Size(name)) }

// Text writes a size; a dash where it is unknown.
func (s Shown) Text(name string) string { return sized(s.Size(name), s.exact[name], s.decimals) }

// sized writes a rounded size, and marks one above 0 that rounds to 0.
func sized(v, exact float64, decimals int) string {
	least := strconv.FormatFloat(math.Pow10(-decimals), 'f', decimals, 64)
	switch {
	case math.IsNaN(v):
		return "–"
	case v == 0 && exact > 0:
		return "<" + least
	case v == 0 && exact < 0:
		return ">-" + least
	case v == 0:
		return "0" // nor is it -0
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// Inside are the texts of what was read inside the engine in the launch, by name: those that add up to the ledger do
// so as they are written.
func (s Shown) Inside(list []evidence.Figure) map[string]string {
	out := map[string]string{}
	whole := evidence.Find(list, figure.Ledger).Value(s.Launch)
	var parts []float64
	for _, name := range LedgerParts() {
		parts = append(parts, evidence.Find(list, name).Value(s.Launch))
	}
	digits := decimals(whole)
	for i, v := range stats.Apportioned(whole, parts, digits) {
		out[LedgerParts()[i]] = sized(v, parts[i], digits)
	}
	for _, f := range list {
		if v := f.Value(s.Launch); !slices.Contains(LedgerParts(), f.Name) {
			out[f.Name] = sized(stats.Round(v, decimals(v)), v, decimals(v))
		}
	}
	return out
}

// Sum rounds the parts of a whole and writes them, largest remainders first: a prediction's, or a file's.
func Sum(whole float64, parts []float64) (string, []string) {
	var out []string
	digits := decimals(whole)
	for i, v := range stats.Apportioned(whole, parts, digits) {
		out = append(out, sized(v, parts[i], digits))
	}
	return sized(stats.Round(whole, digits), whole, digits), out
}

// hostShare is the part of the components that is in host memory although a GPU computes. It is subtracted so that the
// parts add up.
func hostShare(all []evidence.Launch, w whole) evidence.Figure {
	f := evidence.Figure{Name: figure.HostParts, Method: evidence.EngineLog, Absent: "the model is in host memory",
		How: "the size, below zero, of weights, KV cache and workspaces that are in host memory although a GPU computes: other " +
			"components count it, and the increase of GPU memory does not"}
	for _, l := range all {
		if w.host[l.ID] > 0 {
			f.Exact(l.ID, -w.host[l.ID])
		}
	}
	return f
}
