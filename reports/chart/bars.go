package chart

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/cost"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/stats"
	"llmparity/reports/plain"
)

// rowsHeight is the height in pixels of a chart with so many rows of so many bars.
func rowsHeight(rows, bars int) int { return 34 + rows*max(38, 14+bars*14) }

// Bars draws one figure of all cells: medians, launches and intervals.
func Bars(id, name, title string) func(*View) []Chart {
	return func(v *View) []Chart { return v.bars(id, name, title, func(int) bool { return true }) }
}

// CostBars draws the decode speed of the cells that tell what a browser costs.
func CostBars(v *View) []Chart {
	return v.bars("cost-decode", figure.DecodeTPS, "Decode speed", func(cell int) bool {
		return slices.ContainsFunc(v.Res.Costs, func(c *cost.Cost) bool {
			return cell == c.Browser || cell == c.Native || c.Narrow != nil && cell == *c.Narrow
		})
	})
}

// bars draws one figure of some cells, by their indexes.
func (v *View) bars(id, name, title string, shown func(cell int) bool) []Chart {
	var labels []string
	var data []opts.BarData
	var dots []dot
	var intervals []*stats.Interval
	out := Chart{ID: id, Title: title, Table: &plain.Grid{},
		Label: fmt.Sprintf("Bar chart of %s of each cell; the table below has the same figures", title)}
	for i, c := range v.Res.Cells {
		f := c.Figure(name)
		if !shown(i) || !f.Known() {
			continue
		}
		for n, x := range f.Values {
			at := spot(c.LaunchName(x.Attempt), digits(x.Value), float64(len(labels)), 5)
			dots = append(dots, dot{at, [2]float64{0, aside(n, len(f.Values))}})
		}
		out.Unit = f.Unit
		out.Table.Rows = append(out.Table.Rows,
			[]string{plain.Line(c.Label), plain.Num(f.Center()), plain.IntervalWords(f), plain.Values(f)})
		labels = append(labels, plain.Line(c.Label)+"\n"+plain.Num(f.Center())+" "+f.Unit)
		data = append(data, opts.BarData{Value: fine(f.Center()), ItemStyle: &opts.ItemStyle{Color: v.Colour(i)}})
		intervals = append(intervals, f.Interval)
	}
	if len(labels) == 0 {
		return nil
	}
	out.Table.Head = []string{"cell", "median (" + out.Unit + ")", "95% interval", "launches (" + out.Unit + ")"}
	if v.Paper { // the page says it once above the charts
		out.Note = "Bars: medians over launches. Dots: launches. Lines: 95% intervals of the medians, which need six launches."
	}
	bar := newBar(labels, opts.Legend{Show: opts.Bool(false)})
	bar.AddSeries("median", data, charts.WithBarChartOpts(opts.BarChart{BarWidth: "46%"}),
		whiskers(intervalLines(intervals), 3))
	bar.MultiSeries = append(bar.MultiSeries, charts.SingleSeries{Type: "scatter", Name: "launches", Data: dots,
		ItemStyle: &opts.ItemStyle{Color: "var(--dot)", BorderColor: "var(--page)", BorderWidth: 1}})
	bar.MultiSeries = append(bar.MultiSeries, unseen(intervals)...)
	out.Height, out.Drawings = rowsHeight(len(labels), 1), []Drawing{{Options: options(bar)}}
	return []Chart{out}
}

// dot is a point beside its place.
type dot struct {
	opts.ScatterData
	SymbolOffset [2]float64 `json:"symbolOffset"`
}

// barTable is bars with several series, upon one another or apart: for each series, a value per bar.
type barTable struct {
	apart     bool
	bars      []string
	intervals []*stats.Interval // of each bar's end
	series    []barSeries
}

type barSeries struct {
	name   string
	values []float64
	looks  []style
}

// add adds a series unless all its values are missing or 0.
func (t *barTable) add(name string, of func(bar int) float64, looks ...style) {
	s := barSeries{name: name, looks: looks}
	some := false
	for n := range t.bars {
		v := of(n)
		s.values, some = append(s.values, v), some || digits(v) != 0 && !math.IsNaN(v)
	}
	if some {
		t.series = append(t.series, s)
	}
}

func (t *barTable) options() map[string]any {
	bar := newBar(t.bars, legendBelow())
	lowest, highest := 0.0, 0.0
	for _, s := range t.series {
		for _, v := range s.values {
			if v < lowest {
				lowest = v
			} else if v > highest {
				highest = v
			}
		}
	}
	if lowest > -0.02*highest { // a remainder just below 0 needs no axis of its own
		bar.XAxisList[0].Min = 0
	}
	for n, s := range t.series {
		var data []opts.BarData
		for _, v := range s.values {
			data = append(data, opts.BarData{Value: orGap(v)})
		}
		if !t.apart {
			s.looks = append(s.looks, charts.WithBarChartOpts(opts.BarChart{Stack: "memory", BarWidth: "56%"}))
		}
		if n == len(t.series)-1 {
			s.looks = append(s.looks, whiskers(intervalLines(t.intervals), 3))
		}
		bar.AddSeries(s.name, data, s.looks...)
	}
	bar.MultiSeries = append(bar.MultiSeries, unseen(t.intervals)...)
	return options(bar)
}

// unseen makes the axis as long as the intervals: echarts does not count lines that mark a series.
func unseen(intervals []*stats.Interval) []charts.SingleSeries {
	var data []opts.ScatterData
	for bar, iv := range intervals {
		if iv != nil {
			data = append(data, opts.ScatterData{Value: []any{digits(iv.Hi), bar}, Symbol: "none"})
		}
	}
	if data == nil {
		return nil
	}
	return []charts.SingleSeries{{Type: "scatter", Symbol: "none", Data: data}}
}

// intervalLines are lines along bars from the lower to the upper end of each interval.
func intervalLines(all []*stats.Interval) []opts.MarkLineNameCoordItem {
	var out []opts.MarkLineNameCoordItem
	for bar, iv := range all {
		if iv != nil {
			out = append(out, whisker(digits(iv.Lo), bar, digits(iv.Hi), bar))
		}
	}
	return out
}

// aside is how many pixels dot n of so many lies above or below the line of the interval.
func aside(n, of int) float64 {
	if of == 1 {
		return 0
	}
	return float64(5+3*(n/2%2)) * float64(1-2*(n%2))
}

// stacked is a cell's bar: the peak of one launch, split as its tables split it.
type stacked struct {
	cell   *compare.Cell
	peak   memory.Points
	sizes  map[string]float64 // drawn, by component
	before float64            // the model; NaN: unknown
	rest   float64            // not broken down
	said   string             // why it is not broken down, or is drawn with less of a part
}

// slight is the overlap of components that is drawn as a shorter baseline, as a share of the peak.
const slight = 0.02

func newStacked(c *compare.Cell) stacked {
	s, points := c.Shown(), c.Points()
	b := stacked{cell: c, peak: points, sizes: map[string]float64{}, before: s.Size(points.Baseline.Name)}
	peak, overlap := s.Size(points.Peak.Name), 0.0
	left := peak - known(b.before)
	for _, col := range Components() {
		v := s.Size(c.Parts.Shown(col.Name).Name)
		if partColour[col.Name] == "" || math.IsNaN(v) {
			continue
		}
		left, overlap = left-v, overlap+max(-v, 0)
		if col.Name == figure.BrowserShare && b.split(s, v) {
			continue
		}
		b.sizes[col.Name] = max(v, 0)
	}
	why := fmt.Sprintf(": the components overlap: they add up to %s MiB more than the peak.", plain.Num(digits(overlap)))
	// without a baseline: compute buffers that are reserved and not all used
	unfilled := math.IsNaN(b.before) && b.sizes[figure.Activations] >= overlap
	switch {
	case !s.Known(figure.ModelWeights):
		why = " is not broken down: the size of its weights is not known."
	case c.Parts.Of != points.Of:
		why = fmt.Sprintf(" is not broken down: the model is in %s, and the bar is %s.", c.Parts.Of, points.Of)
	case math.Abs(left) > 1e-6:
		why = " is not broken down: not all of its components are known."
	case overlap == 0:
		return b
	case unfilled:
		b.sizes[figure.Activations] -= overlap
		b.said = why + " Compute buffers are reserved and not all used: “activations” is drawn shorter by that."
		return b
	case overlap <= min(slight*peak, known(b.before)):
		b.before -= overlap
		b.said = why + " “Before the model” is drawn shorter by that."
		return b
	default:
		why += " The bar is not broken down."
	}
	b.said, b.sizes, b.rest = why, nil, peak-known(b.before)
	return b
}

// browserParts are the parts of a browser's growth that a bar shows by themselves, and the words of its legend.
var browserParts = []struct{ name, words string }{{figure.GPUProcess, "GPU process"},
	{figure.TransferBuffers, "transfer buffers"}, {figure.PageCopies, "page: only at the peak"},
	{figure.PageHeaps, "renderer"}, {otherBrowser, "browser: other"}}

// otherBrowser is what the other parts leave of a browser's growth.
const otherBrowser = "browser_other"

// split puts the parts of a browser's growth in place of their sum. It reports false if they are not known, or are
// together more than the sum.
func (b *stacked) split(s memory.Shown, sum float64) bool {
	parts, rest := map[string]float64{}, sum
	for _, p := range browserParts {
		if v := s.Size(p.name); v > 0 { // one that has shrunk is netted with the rest
			parts[p.name] = v
			rest -= v
		}
	}
	if len(parts) == 0 || rest < -1e-6 {
		return false
	}
	parts[otherBrowser] = max(rest, 0)
	maps.Copy(b.sizes, parts)
	return true
}

// known is a number, or 0 in place of one that is unknown.
func known(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// PeakStack draws the peak of one launch of each cell by component, with the interval of the median; where PSS could
// not be read, the sum of RSS.
func PeakStack(v *View) []Chart { return peakStack(v.Res.Cells) }

func peakStack(cells []*compare.Cell) []Chart {
	var bars []stacked
	t := &barTable{}
	more := []string{"Bar: total PSS at the peak of one launch, the one closest to the median. Total PSS counts a page " +
		"that several processes share once."}
	for _, c := range cells {
		p := c.Points()
		if !c.Shown().Known(p.Peak.Name) {
			continue
		}
		b := newStacked(c)
		name := plain.Line(c.Label) + "\n" + c.Shown().Text(p.Peak.Name) + " MiB"
		if p.Peak.Name == figure.PeakRSS {
			name += " (RSS)"
		}
		if b.said != "" {
			more = append(more, plain.Line(c.Label)+b.said)
		}
		bars, t.bars, t.intervals = append(bars, b), append(t.bars, name), append(t.intervals, p.Peak.Interval)
	}
	if len(bars) == 0 {
		return nil
	}
	t.add("before the model", func(n int) float64 { return bars[n].before }, inked("var(--off)", 0))
	add := func(words, name string) {
		t.add(words, func(n int) float64 {
			if v, ok := bars[n].sizes[name]; ok {
				return v
			}
			return math.NaN()
		}, inked(partColour[name], 0))
	}
	for _, col := range Components() {
		if partColour[col.Name] == "" {
			continue
		}
		if col.Name == figure.BrowserShare {
			for _, p := range browserParts {
				add(p.words, p.name)
			}
		}
		add(PartName(col.Name), col.Name)
	}
	t.add("not broken down", func(n int) float64 {
		if bars[n].sizes == nil {
			return bars[n].rest
		}
		return math.NaN()
	}, inked("var(--p3)", 0))
	return []Chart{{ID: "headline-memory", Title: "Peak memory", Unit: "MiB", Height: rowsHeight(len(bars), 1),
		Note: "Bar: the peak of one launch, by component. Line: 95% interval of the median.",
		More: slices.DeleteFunc(append(more, browserNote(bars), shownLaunches(cells)),
			func(text string) bool { return text == "" }),
		Label:    "Stacked bars of each cell's peak memory by component; section Memory has the figures in a table",
		Drawings: []Drawing{{Options: t.options()}}}}
}

// browserNote explains the parts of a browser's growth, if a bar shows them.
func browserNote(bars []stacked) string {
	if !slices.ContainsFunc(bars, func(b stacked) bool { _, split := b.sizes[otherBrowser]; return split }) {
		return ""
	}
	return "The browser's growth is split by process: the GPU process beyond the model's buffers, buffers between page " +
		"and GPU process, what the page needs only at the peak (copies of weights, compilers), and the page's own " +
		"heaps (renderer)."
}

// shownLaunches names the launch of each cell, and its median where that is not the launch's: between two launches.
func shownLaunches(cells []*compare.Cell) string {
	var out []string
	for _, c := range cells {
		s, peak := c.Shown(), c.Points().Peak
		if !s.Known(peak.Name) {
			continue
		}
		words := fmt.Sprintf("%s: launch %s", plain.Line(c.Label), c.ShownLaunch())
		if math.Abs(s.Size(peak.Name)-peak.Center()) >= 0.005 {
			words += fmt.Sprintf(" (median %s MiB)", plain.Num(peak.Center()))
		}
		out = append(out, words)
	}
	return "Launches shown: " + strings.Join(out, "; ") + "."
}

// Components are the columns of tables, the browser's own before everything else.
func Components() []*figure.Row {
	all := figure.Rows(func(r *figure.Row) bool { return r.Component })
	left := slices.IndexFunc(all, func(r *figure.Row) bool { return r.Name == figure.FrameworkOverhead })
	return slices.Insert(all, left, figure.New(figure.BrowserShare))
}

// PartName is a component in a word or two.
func PartName(name string) string {
	if r := figure.Of(name); r != nil && r.Part != "" {
		return plain.OneLine(r.Part)
	}
	return name
}
