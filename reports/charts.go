package reports

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// chart is a figure of the report: one or more drawings to choose from, with an accessible name and a table.
type chart struct {
	ID       string
	Title    string
	Unit     string
	Note     string // how to read it
	Label    string // accessible name
	Drawings []drawing
	Choice   string // what tells the drawings apart
	Chosen   int    // the drawing shown first
	Table    *grid
	Wide     bool // on paper it takes both columns
	Height   int  // of the plot in pixels; 0: as the style sheet says
	Cell     int  // the number of the one cell that it shows, from 1
}

// drawing is one of a chart's drawings.
type drawing struct {
	Name    string         `json:"name"`
	Caption string         `json:"caption"`
	Options map[string]any `json:"options"`
	// of one launch, or of what was repeated in place of them
	ofOneLaunch bool
}

// view is what figures are drawn from.
type view struct {
	res   *compare.Result
	runs  []*record.Run
	own   Colours
	paper bool // for figures of their own, which no page's size bounds
}

// launchesDrawn is how many launches a drawing shows at most: fewer with many cells, to keep the page small.
func (v *view) launchesDrawn() int {
	const most, least, together = 20, 4, 80
	if v.paper {
		return most
	}
	return max(least, min(most, together/max(1, len(v.res.Cells))))
}

// marshal encodes JSON so that it cannot end a script element.
func marshal(v any) ([]byte, error) {
	text, err := json.Marshal(v) // encoding/json writes <, > and & as \u003c …
	if err != nil {
		return nil, fmt.Errorf("encoding the charts: %w", err)
	}
	return text, nil
}

func peaksSection() section {
	return section{ID: "peaks", Title: "Peaks", For: onPage, Draw: []func(*view) []chart{peaks}}
}

func peaks(v *view) []chart {
	shown := v.having(figure.PeakPSS)
	if len(shown) == 0 {
		return nil
	}
	bar := v.medians(shown, figure.PeakPSS, "peak")
	var base []opts.BarData
	t := &grid{Head: []string{"cell", "baseline (MiB)", "after warm-up (MiB)", "peak (MiB)", "increase (MiB)",
		"95% interval of the peak", "peak of each launch (MiB)"}}
	for _, i := range shown {
		c := &v.res.Cells[i]
		b, p := c.Figure(figure.Baseline), c.Figure(figure.PeakPSS)
		base = append(base, barData(b.Center()))
		t.Rows = append(t.Rows, []string{line(c.Label), known(b), known(c.Figure(figure.PostWarmup)), num(p.Center()),
			known(c.Figure(figure.Increase)), intervalWords(p), values(p)})
	}
	bar.add("bar", "baseline", base, charts.WithBarChartOpts(opts.BarChart{BarGap: "-100%", BarWidth: "46%"}),
		inked("var(--veil)", 0))
	v.launches(bar, shown, figure.PeakPSS)
	return []chart{{ID: "peaks", Title: "Baseline and peak", Unit: "MiB", Table: t, Height: rowsHeight(len(shown), 1),
		Note: "Total PSS. Bar: median peak; muted part: median baseline, before the model is loaded. Dots: launches. " +
			"Line: 95% interval, from six launches on.",
		Label:    "Bar chart of baseline and peak memory of each cell; the table below has the same figures",
		Drawings: []drawing{{Options: bar.options()}}}}
}

// rowsHeight is the height in pixels of a chart with so many rows of so many bars.
func rowsHeight(rows, bars int) int { return 34 + rows*max(38, 14+bars*14) }

// bars draws one figure: medians, launches and intervals.
func bars(id, name, title string) func(*view) []chart {
	return func(v *view) []chart {
		shown := v.having(name)
		if len(shown) == 0 {
			return nil
		}
		unit := v.res.Cells[shown[0]].Figure(name).Unit
		t := &grid{Head: []string{"cell", "median (" + unit + ")", "95% interval", "launches (" + unit + ")"}}
		for _, i := range shown {
			f := v.res.Cells[i].Figure(name)
			t.Rows = append(t.Rows, []string{line(v.res.Cells[i].Label), num(f.Center()), intervalWords(f), values(f)})
		}
		bar := v.medians(shown, name, "median")
		v.launches(bar, shown, name)
		return []chart{{ID: id, Title: title, Unit: unit, Table: t, Height: rowsHeight(len(shown), 1),
			Label:    fmt.Sprintf("Bar chart of %s of each cell; the table below has the same figures", title),
			Drawings: []drawing{{Options: bar.options()}}}}
	}
}

// mostNarrow is how many cells the chart of components has room for.
const mostNarrow = 4

// having are the cells that have a figure.
func (v *view) having(name string) []int {
	var out []int
	for i := range v.res.Cells {
		if v.res.Cells[i].Figure(name).Known() {
			out = append(out, i)
		}
	}
	return out
}

// medians has one bar per cell, with its interval. Labels include the median.
func (v *view) medians(shown []int, name, series string) plot {
	var labels []string
	var data []opts.BarData
	var intervals []any
	for at, i := range shown {
		f := v.res.Cells[i].Figure(name)
		labels = append(labels, line(v.res.Cells[i].Label)+"\n"+num(f.Center())+" "+f.Unit)
		data = append(data, opts.BarData{Value: digits(f.Center()), ItemStyle: &opts.ItemStyle{Color: v.colour(i)}})
		if iv := f.Interval; iv != nil {
			intervals = append(intervals, whisker(digits(iv.Lo), at, digits(iv.Hi), at))
		}
	}
	bar := newBar(labels, false)
	bar.add("bar", series, data, charts.WithBarChartOpts(opts.BarChart{BarWidth: "46%"}), whiskers(intervals, 3))
	return bar
}

// stackTable is stacked bars: for each series, a value per bar.
type stackTable struct {
	bars      []string
	intervals []*stats.Interval // of each bar's end
	series    []string
	colours   []string
	values    [][]float64
}

// add adds a series unless all its values are missing or 0.
func (t *stackTable) add(name, colour string, of func(bar int) float64) {
	var values []float64
	some := false
	for n := range t.bars {
		v := of(n)
		values, some = append(values, v), some || digits(v) != 0 && !math.IsNaN(v)
	}
	if some {
		t.series, t.colours, t.values = append(t.series, name), append(t.colours, colour), append(t.values, values)
	}
}

// lowest is the lower end of the lowest bar, and highest the upper end of the highest.
func (t *stackTable) lowest() float64  { return t.sum(math.Min) }
func (t *stackTable) highest() float64 { return t.sum(math.Max) }

func (t *stackTable) sum(end func(x, y float64) float64) float64 {
	out := 0.0
	for n := range t.bars {
		all := 0.0
		for _, values := range t.values {
			if v := end(values[n], 0); !math.IsNaN(v) {
				all += v
			}
		}
		out = end(out, all)
	}
	return out
}

// grid has the same figures, one row per bar.
func (t *stackTable) grid() *grid {
	g := &grid{Head: []string{"bar"}}
	for n, bar := range t.bars {
		row := []string{strings.ReplaceAll(bar, "\n", ", ")}
		for _, values := range t.values {
			row = append(row, orNone(values[n]))
		}
		g.Rows = append(g.Rows, row)
	}
	for _, name := range t.series {
		g.Head = append(g.Head, name+" (MiB)")
	}
	return g
}

func (t *stackTable) options() map[string]any {
	bar := newBar(t.bars, true)
	if t.lowest() > -0.02*t.highest() { // a remainder just below 0 needs no axis of its own
		bar.XAxisList[0].Min = 0
	}
	for n, name := range t.series {
		var data []opts.BarData
		for _, v := range t.values[n] {
			data = append(data, barData(v))
		}
		bar.add("bar", name, data, stacked, inked(t.colours[n], 0))
	}
	var intervals []any
	for n, iv := range t.intervals {
		if iv != nil {
			intervals = append(intervals, whisker(digits(iv.Lo), n, digits(iv.Hi), n))
		}
	}
	if n := len(bar.MultiSeries); n > 0 {
		whiskers(intervals, 3)(&bar.MultiSeries[n-1])
	}
	return bar.options()
}

// launches adds a dot for each launch.
func (v *view) launches(bar plot, shown []int, name string) {
	var dots []dot
	for row, i := range shown {
		values := v.res.Cells[i].Figure(name).Values
		for n, x := range values {
			at := spot(fmt.Sprintf("%s (attempt %d)", v.res.Cells[i].Repeated(), x.Attempt), digits(x.Value),
				float64(row), 5)
			dots = append(dots, dot{at, [2]float64{0, aside(n, len(values))}})
		}
	}
	bar.add("scatter", "launches", dots,
		charts.WithItemStyleOpts(opts.ItemStyle{Color: "var(--dot)", BorderColor: "var(--page)", BorderWidth: 1}))
}

// dot is a point beside its place.
type dot struct {
	opts.ScatterData
	SymbolOffset [2]float64 `json:"symbolOffset"`
}

// aside is how many pixels dot n of so many lies above or below the line of the interval.
func aside(n, of int) float64 {
	if of == 1 {
		return 0
	}
	return float64(5+3*(n/2%2)) * float64(1-2*(n%2))
}

func known(f evidence.Figure) string {
	if !f.Known() {
		return f.Absent
	}
	return num(f.Center())
}

func intervalWords(f evidence.Figure) string {
	switch {
	case !f.Known():
		return ""
	case f.Interval == nil:
		return f.Note
	}
	return num(f.Interval.Lo) + " to " + num(f.Interval.Hi)
}

func values(f evidence.Figure) string {
	var all []string
	for _, v := range f.Values {
		all = append(all, num(v.Value))
	}
	return strings.Join(all, ", ")
}
