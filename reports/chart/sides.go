package chart

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/ratio"
	"llmparity/internal/figure"
	"llmparity/internal/gates"
	"llmparity/internal/stats"
	"llmparity/reports/plain"
)

// MostHeadlines is how many cells the picture of the answer has room for: of more, it has the pairs that differ most.
const MostHeadlines = 12

// Headlines is the picture of the question, one chart or none: of contexts the growth of the KV cache, or else of
// memory; of runs, and of cells with their reference cells, the launches of the figure that differs most; else the
// peak by component. about are the comparisons of the answer.
func Headlines(v *View, about []*compare.Comparison) []Chart {
	if all := v.DrawnOver(figure.Contexts); len(all) > 0 && strings.HasPrefix(all[0].ID, "growth-context") {
		c := all[0]
		c.ID, c.Table, c.Setup = "headline-growth", nil, ""
		c.Drawings = slices.Clone(c.Drawings[:1])
		c.Drawings[0].Caption, c.Chosen = "", 0
		return []Chart{c}
	}
	if c := v.pairDots(about); c != nil {
		return c
	}
	at := v.apart(about, figure.PeakPSS)
	var cells []*compare.Cell
	for _, i := range at {
		cells = append(cells, v.Res.Cells[i])
	}
	if c := peakStack(cells); c != nil {
		c[0].Note += v.ofCells(at)
		return c
	}
	return v.dotPlot("headline-sides", figure.DecodeTPS, nil)
}

// apart are the cells that the picture has room for, by index: all, or else those of the pairs whose medians of a
// figure are farthest apart.
func (v *View) apart(about []*compare.Comparison, name string) []int {
	all := make([]int, len(v.Res.Cells))
	for i := range all {
		all[i] = i
	}
	if len(all) <= MostHeadlines {
		return all
	}
	far := func(c *compare.Comparison) float64 {
		a, b := v.Res.Cells[c.A].Figure(name), v.Res.Cells[c.B].Figure(name)
		if !a.Known() || !b.Known() || a.Center() <= 0 || b.Center() <= 0 {
			return -1
		}
		return math.Abs(math.Log(b.Center() / a.Center()))
	}
	sorted := slices.SortedStableFunc(slices.Values(about),
		func(a, b *compare.Comparison) int { return cmp.Compare(far(b), far(a)) })
	taken := map[int]bool{}
	for _, c := range sorted {
		needed := map[int]bool{c.A: true, c.B: true}
		maps.Copy(needed, taken)
		if len(needed) <= MostHeadlines && far(c) >= 0 {
			taken = needed
		}
	}
	if len(taken) == 0 {
		return all[:MostHeadlines]
	}
	return slices.Sorted(maps.Keys(taken))
}

// ofCells says which cells are drawn, if not all are.
func (v *View) ofCells(at []int) string {
	if len(at) == len(v.Res.Cells) {
		return ""
	}
	return fmt.Sprintf(" %d of %d cells: the pairs that differ most.", len(at), len(v.Res.Cells))
}

// Pictures are the pictures of answers, for figures of their own: the peak by component, and the launches of sides.
func Pictures(v *View, about []*compare.Comparison) []Chart {
	return append(PeakStack(v), v.pairDots(about)...)
}

// pairDots are the launches of sides; none of engines, which differ in everything.
func (v *View) pairDots(about []*compare.Comparison) []Chart {
	sides := slices.DeleteFunc(slices.Clone(about), func(c *compare.Comparison) bool {
		return c.Axes == nil && !v.Res.Families[c.Family].Runs
	})
	if len(sides) == 0 {
		return nil
	}
	name := differing(sides)
	if failed := v.failed(); failed != "" {
		name = failed
	}
	return v.dotPlot("headline-sides", name, sides)
}

// failed is the CPU time per token if a gate of two sides failed by it; no ratio has it, and it may differ alone.
func (v *View) failed() string {
	g := v.Res.Gate
	if g == nil || !g.Interleaved || g.Status != gates.Failed {
		return ""
	}
	if c := g.Worst(); c.Figure == figure.TokenCPU {
		return c.Figure
	}
	return ""
}

// differing is the figure with the largest difference between sides: of those of speed, if any differs, else of
// memory; without a difference, decode.
func differing(about []*compare.Comparison) string {
	speeds := []string{figure.DecodeTPS, figure.AggregateTPS}
	times := []string{figure.TTFT, figure.PrefillTPS, figure.Latency, figure.LoadTime}
	for _, of := range [][]string{speeds, times, {figure.PeakPSS}, {figure.PeakRSS}} {
		name, most := "", 0.0
		for _, c := range about {
			for _, r := range c.Ratios {
				if change := distance(r); slices.Contains(of, r.Figure) && r.Call == stats.Differs && change > most {
					name, most = r.Figure, change
				}
			}
		}
		if name != "" {
			return name
		}
	}
	known := func(r ratio.Ratio) bool { return r.Figure == figure.AggregateTPS }
	if slices.ContainsFunc(about, func(c *compare.Comparison) bool { return slices.ContainsFunc(c.Ratios, known) }) {
		return figure.AggregateTPS
	}
	return figure.DecodeTPS
}

// distance is how far the sides of a ratio are apart, the same whichever is the first.
func distance(r ratio.Ratio) float64 {
	if r.Ratio == nil || *r.Ratio <= 0 {
		return math.Abs(r.Delta)
	}
	return math.Abs(math.Log(*r.Ratio))
}

// dotPlot draws a figure with a row a cell: a dot a launch, and a bar for the median and its interval.
func (v *View) dotPlot(id, name string, about []*compare.Comparison) []Chart {
	names := v.rowNames(about)
	row := figure.New(name)
	out := Chart{ID: id, Title: plain.TitleCase(cmp.Or(row.Bar[1], row.Title)), Unit: row.Unit, Table: &plain.Grid{}}
	var labels []string
	var medians []opts.ScatterData
	var intervals []*stats.Interval
	var drawn extent
	dots := evidence.Groups[group, dot]{}
	counts := []int{}
	at := v.apart(about, name)
	for _, i := range at {
		c := v.Res.Cells[i]
		f := c.Figure(name)
		if !f.Known() {
			continue
		}
		row, of := float64(len(labels)), v.groupOf(i, about)
		for n, x := range inOrder(f.Values) {
			dots.Add(of, dot{spot(c.LaunchName(x.Attempt), fine(x.Value), row, 8), [2]float64{0, above(n)}})
			drawn.add(x.Value)
		}
		labels = append(labels, names[i]+"\n"+plain.Num(f.Center())+" "+f.Unit)
		medians = append(medians, opts.ScatterData{Name: "median", Value: []any{fine(f.Center()), row}})
		intervals = append(intervals, f.Interval)
		if f.Interval != nil {
			drawn.add(f.Interval.Lo, f.Interval.Hi)
		}
		counts = append(counts, len(f.Values))
		out.Table.Rows = append(out.Table.Rows,
			[]string{names[i], plain.Num(f.Center()), plain.IntervalWords(f), plain.Values(f)})
	}
	if len(labels) == 0 {
		return nil
	}
	out.Table.Head = []string{"side", "median (" + out.Unit + ")", "95% interval", "launches (" + out.Unit + ")"}
	bar := newBar(labels, opts.Legend{Show: opts.Bool(false)})
	for of, data := range dots.All() {
		bar.MultiSeries = append(bar.MultiSeries, v.dotSeries(of, data, len(v.engineColour())))
	}
	bar.MultiSeries = append(bar.MultiSeries, v.medianBars(medians, intervals))
	noise, words := v.noise(name, about)
	if noise != nil {
		drawn.add(noise.Lo, noise.Hi)
		bar.MultiSeries[0].ConfigureSeriesOpts(stretch(noise))
	}
	o := drawn.broken(options(bar), "xAxis")
	high := 58
	if len(labels) > 6 {
		high = 44
	}
	out.Height = 34 + high*len(labels)
	out.Label = fmt.Sprintf("Dots of %s, one a launch, a row for each of %s, with medians and 95%% intervals", out.Title,
		explain.And(names, 6))
	out.Note = dotWords(counts, intervals) + words + better(row) + drawn.words() + v.ofCells(at)
	out.Drawings = []Drawing{{Options: o, Figure: name}}
	return []Chart{out}
}

// group is what dots of one look have in common: an engine, by its first cell, and whether they are of the reference.
type group struct {
	engine    int
	reference bool
}

func (v *View) groupOf(cell int, about []*compare.Comparison) group {
	same := func(o *compare.Cell) bool { return o.Spec.Engine == v.Res.Cells[cell].Spec.Engine }
	other := func(c *compare.Comparison) bool { return c.B == cell }
	return group{slices.IndexFunc(v.Res.Cells, same), !slices.ContainsFunc(about, other)}
}

// dotSeries are the dots of a group: circles of the engine's colour for the reference, diamonds for what is compared
// with it, in the next colour if there is one engine.
func (v *View) dotSeries(of group, data []dot, engines int) charts.SingleSeries {
	called, colour := "launches", v.engineColour()[v.Res.Cells[of.engine].Spec.Engine]-1
	if engines > 1 {
		called = v.Res.Cells[of.engine].Title() + ", launches"
	}
	s := charts.SingleSeries{Type: "scatter", Name: plain.Line(called), Data: data}
	if !of.reference {
		s.Symbol = "diamond"
		if engines == 1 {
			colour = (colour + 1) % engineColours
		}
	}
	s.ConfigureSeriesOpts(inked(fmt.Sprintf("var(--c%d)", colour), 0.75))
	return s
}

// noise is where the baseline run's figure may be although nothing changed but the time, if it was measured once more,
// and what the caption says of it; nil where there are several pairs.
func (v *View) noise(name string, about []*compare.Comparison) (*stats.Interval, string) {
	if len(about) != 1 {
		return nil, ""
	}
	at := slices.IndexFunc(about[0].Ratios, func(r ratio.Ratio) bool { return r.Figure == name && r.Noise != nil })
	if at < 0 {
		return nil, ""
	}
	r := about[0].Ratios[at]
	lo, hi := min(0, r.Noise.Percent), max(0, r.Noise.Percent)
	if i := r.Noise.Interval; i != nil {
		lo, hi = i.Lo, i.Hi
	}
	a, _ := v.Res.SideNames(about[0])
	words := fmt.Sprintf(" Grey: %s against itself, the machine's noise (%+.1f%% to %+.1f%%).", plain.Line(a), lo, hi)
	of := func(percent float64) float64 { return fine(r.Left.Median * (1 + percent/100)) }
	return &stats.Interval{Lo: of(lo), Hi: of(hi)}, words
}

// stretch is a grey band behind a series.
func stretch(of *stats.Interval) style {
	return func(s *charts.SingleSeries) {
		begin := opts.MarkAreaData{XAxis: of.Lo}
		begin.ItemStyle = &opts.ItemStyle{Color: "var(--line)"}
		charts.WithMarkAreaData([]opts.MarkAreaData{begin, {XAxis: of.Hi}})(s)
	}
}

// medianBars are the medians, with their intervals as bars.
func (v *View) medianBars(medians []opts.ScatterData, intervals []*stats.Interval) charts.SingleSeries {
	s := charts.SingleSeries{Type: "scatter", Name: "median and 95% CI", Data: medians, Symbol: "rect",
		SymbolSize: []int{3, 15}, ItemStyle: &opts.ItemStyle{Color: "var(--ink)"}}
	whiskers(intervalLines(intervals), 3)(&s)
	return s
}

// dotWords say what dots and bars are, and how many launches there are.
func dotWords(counts []int, intervals []*stats.Interval) string {
	few := slices.ContainsFunc(intervals, func(i *stats.Interval) bool { return i == nil })
	words := fmt.Sprintf("Dots: launches, %s a side. Bar: median and 95%% CI.", from(counts))
	if few {
		words += " A side with fewer than six launches has no CI."
	}
	return words
}

// from is one number, or the range of several.
func from(counts []int) string {
	lo, hi := slices.Min(counts), slices.Max(counts)
	if lo == hi {
		return strconv.Itoa(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// better says which way a figure is better.
func better(row *figure.Row) string {
	switch row.Better {
	case figure.Higher:
		return " Right is better."
	case figure.Lower:
		return " Left is better."
	}
	return ""
}

// inOrder sorts values, so that dots of similar values are drawn beside one another.
func inOrder(values []evidence.Value) []evidence.Value {
	return slices.SortedStableFunc(slices.Values(values),
		func(a, b evidence.Value) int { return cmp.Compare(a.Value, b.Value) })
}

// above is how many pixels dot n of a row lies above its bar, so that dots of like values do not hide one another.
func above(n int) float64 { return -float64(12 + 5*(n%3)) }

// rowNames names cells as sides of comparisons if that is unique, else by their labels.
func (v *View) rowNames(about []*compare.Comparison) []string {
	labels, short := make([]string, len(v.Res.Cells)), make([]string, len(v.Res.Cells))
	for i, c := range v.Res.Cells {
		labels[i] = plain.Line(c.Label)
	}
	for _, c := range about {
		a, b := v.Res.SideNames(c)
		short[c.A], short[c.B] = plain.Line(a), plain.Line(b)
	}
	seen := map[string]bool{"": true}
	for _, name := range short {
		if seen[name] {
			return labels
		}
		seen[name] = true
	}
	return short
}
