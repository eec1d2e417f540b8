package chart

import (
	"cmp"
	"fmt"
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
	"llmparity/internal/stats"
	"llmparity/reports/plain"
)

// MostHeadlines is how many cells the picture of the answer has room for.
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
	if len(v.Res.Cells) > MostHeadlines {
		return nil
	}
	if c := v.pairDots(about); c != nil {
		return c
	}
	if c := PeakStack(v); c != nil {
		return c
	}
	return v.dotPlot("headline-sides", figure.DecodeTPS, nil)
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
	if len(sides) == 0 || len(v.Res.Cells) > MostHeadlines {
		return nil
	}
	return v.dotPlot("headline-sides", differing(sides), sides)
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
	dots := evidence.Groups[int, dot]{} // by the first cell of the engine
	counts := []int{}
	for i, c := range v.Res.Cells {
		f := c.Figure(name)
		if !f.Known() {
			continue
		}
		at := float64(len(labels))
		engine := slices.IndexFunc(v.Res.Cells, func(o *compare.Cell) bool { return o.Spec.Engine == c.Spec.Engine })
		for n, x := range inOrder(f.Values) {
			dots.Add(engine, dot{spot(c.LaunchName(x.Attempt), fine(x.Value), at, 8), [2]float64{0, above(n)}})
			drawn.add(x.Value)
		}
		labels = append(labels, names[i]+"\n"+plain.Num(f.Center())+" "+f.Unit)
		medians = append(medians, opts.ScatterData{Name: "median", Value: []any{fine(f.Center()), at}})
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
	for engine, of := range dots.All() {
		called := "launches"
		if len(dots.Keys) > 1 {
			called = v.Res.Cells[engine].Title() + ", launches"
		}
		s := charts.SingleSeries{Type: "scatter", Name: plain.Line(called), Data: of}
		s.ConfigureSeriesOpts(inked(v.Colour(engine), 0.75))
		bar.MultiSeries = append(bar.MultiSeries, s)
	}
	bar.MultiSeries = append(bar.MultiSeries, v.medianBars(medians, intervals))
	noise, words := v.noise(name, about)
	if noise != nil {
		drawn.add(noise.Lo, noise.Hi)
		bar.MultiSeries[0].ConfigureSeriesOpts(stretch(noise))
	}
	o := drawn.broken(options(bar), "xAxis")
	out.Height = 34 + 58*len(labels)
	out.Label = fmt.Sprintf("Dots of %s, one a launch, a row for each of %s, with medians and 95%% intervals", out.Title,
		explain.And(names, 6))
	out.Note = dotWords(counts, intervals) + words + better(row) + drawn.words()
	out.Drawings = []Drawing{{Options: o, Figure: name}}
	return []Chart{out}
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
