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
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// chart is a figure of the report: one or more drawings that a reader chooses from, and words for those who don't see
// them.
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
	Cell     int  // the number of the one cell that it shows, from 1
}

// drawing is a chart's options as the charting library takes them. A colour may be var(--name): the page puts in the
// theme's.
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

// launchesDrawn is the most lines of launches in a drawing of many: with many cells fewer, so that the page stays
// small.
func (v *view) launchesDrawn() int {
	const most, least, together = 20, 4, 80
	if v.paper {
		return most
	}
	return max(least, min(most, together/max(1, len(v.res.Cells))))
}

// options validates a chart and gives its options.
func options(c interface {
	Validate()
	JSON() map[string]any
}) map[string]any {
	c.Validate()
	o := c.JSON()
	delete(o, "color") // the page's colours are of its own
	for _, part := range []string{"title", "toolbox"} {
		if text, err := json.Marshal(o[part]); err == nil && string(text) == "{}" {
			delete(o, part)
		}
	}
	return o
}

// marshal escapes what could end a script element.
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
	width := charts.WithBarChartOpts(opts.BarChart{BarGap: "-100%", BarWidth: "46%"})
	bar := v.medians(shown, figure.PeakPSS, "peak", width)
	var base []opts.BarData
	t := &grid{Head: []string{"cell", "baseline (MiB)", "after warm-up (MiB)", "peak (MiB)", "increase (MiB)",
		"peak's 95 % interval", "peaks of launches (MiB)"}}
	for _, i := range shown {
		c := &v.res.Cells[i]
		b, p := c.Figure(figure.Baseline), c.Figure(figure.PeakPSS)
		datum := opts.BarData{Value: "-"} // the library's word for no value
		if b.Known() {
			datum.Value = digits(b.Center())
		}
		base = append(base, datum)
		t.Rows = append(t.Rows, []string{line(c.Label), known(b), known(c.Figure(figure.PostWarmup)), num(p.Center()),
			known(c.Figure(figure.Increase)), intervalWords(p), values(p)})
	}
	bar.AddSeries("baseline", base, width, inked("var(--veil)", 0))
	bar.Overlap(v.launches(shown, figure.PeakPSS))
	return []chart{{ID: "peaks", Title: "Baseline and peak", Unit: "MiB", Table: t, Wide: len(shown) > mostNarrow,
		Note: "Total PSS. Bar: median peak; the muted part: median baseline, before a model is loaded. Dots: launches. " +
			"Line: 95 % interval, where there are launches enough.",
		Label:    "Bar chart of baseline and peak memory for each cell; the same figures are in the table below it",
		Drawings: []drawing{{Options: options(bar)}}}}
}

// bars draws one figure: the medians, their launches, their intervals.
func bars(id, name, title string) func(*view) []chart {
	return func(v *view) []chart {
		shown := v.having(name)
		if len(shown) == 0 {
			return nil
		}
		unit := v.res.Cells[shown[0]].Figure(name).Unit
		t := &grid{Head: []string{"cell", "median (" + unit + ")", "95 % interval", "launches (" + unit + ")"}}
		for _, i := range shown {
			f := v.res.Cells[i].Figure(name)
			t.Rows = append(t.Rows, []string{line(v.res.Cells[i].Label), num(f.Center()), intervalWords(f), values(f)})
		}
		bar := v.medians(shown, name, "median", charts.WithBarChartOpts(opts.BarChart{BarWidth: "46%"}))
		bar.Overlap(v.launches(shown, name))
		return []chart{{ID: id, Title: title, Unit: unit, Table: t, Wide: len(shown) > mostNarrow,
			Label:    fmt.Sprintf("Bar chart of %s for each cell; the same figures are in the table below it", title),
			Drawings: []drawing{{Options: options(bar)}}}}
	}
}

// mostNarrow is how many bars one column of paper has room for.
const mostNarrow = 4

// having are the cells of which a figure is known.
func (v *view) having(name string) []int {
	var out []int
	for i := range v.res.Cells {
		if v.res.Cells[i].Figure(name).Known() {
			out = append(out, i)
		}
	}
	return out
}

// medians has a bar a cell, with its interval. Its label gives the median too.
func (v *view) medians(shown []int, name, series string, width charts.SeriesOpts) *charts.Bar {
	var labels []string
	var data []opts.BarData
	var intervals []any
	for at, i := range shown {
		f := v.res.Cells[i].Figure(name)
		labels = append(labels, line(v.res.Cells[i].Label)+"\n"+num(f.Center())+" "+f.Unit)
		data = append(data, opts.BarData{Value: digits(f.Center()), ItemStyle: &opts.ItemStyle{Color: v.colour(i)}})
		if iv := f.Interval; iv != nil {
			intervals = append(intervals, whisker(at, digits(iv.Lo), digits(iv.Hi)))
		}
	}
	bar := newBar(labels, false)
	bar.AddSeries(series, data, width, whiskers(intervals, 3))
	return bar
}

// inked is a series' colour; of an opacity of 0 it is opaque.
func inked(colour string, opacity float32) charts.SeriesOpts {
	style := opts.ItemStyle{Color: colour}
	if opacity > 0 {
		style.Opacity = opts.Float(opacity)
	}
	return charts.WithItemStyleOpts(style)
}

// newBar is a chart of bars without any yet; with a legend it stands below them.
func newBar(labels []string, legend bool) *charts.Bar {
	bar := charts.NewBar()
	shown, bottom := opts.Legend{Show: opts.Bool(false)}, "4"
	if legend {
		shown, bottom = legendBelow(nil), "40"
	}
	bar.SetGlobalOptions(
		charts.WithAnimation(false),
		charts.WithLegendOpts(shown),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "item"}),
		charts.WithGridOpts(opts.Grid{Left: "4", Right: "12", Top: "14", Bottom: bottom,
			ContainLabel: opts.Bool(true)}),
		charts.WithXAxisOpts(opts.XAxis{Type: "category"}),
		charts.WithYAxisOpts(opts.YAxis{Type: "value", SplitNumber: 4}),
	)
	bar.SetXAxis(labels)
	return bar
}

// stacked puts bars of a chart upon one another.
var stacked = charts.WithBarChartOpts(opts.BarChart{Stack: "memory", BarWidth: "56%"})

// legendBelow toggles series; those that are selected are shown at first.
func legendBelow(selected map[string]bool) opts.Legend {
	return opts.Legend{Show: opts.Bool(true), Type: "scroll", Bottom: "0", Left: "0", Right: "0", Icon: "roundRect",
		ItemWidth: 14, ItemHeight: 8, Selected: selected}
}

// newLine is a chart over a number, without lines yet.
func newLine(x string, from any, selected map[string]bool) *charts.Line {
	l := charts.NewLine()
	l.SetGlobalOptions(
		charts.WithAnimation(false),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: "axis"}),
		charts.WithLegendOpts(legendBelow(selected)),
		charts.WithGridOpts(opts.Grid{Left: "4", Right: "14", Top: "26", Bottom: "58", ContainLabel: opts.Bool(true)}),
		charts.WithXAxisOpts(opts.XAxis{Type: "value", Name: x, NameLocation: "middle", NameGap: 26, Min: from,
			Max: "dataMax"}),
		charts.WithYAxisOpts(opts.YAxis{Type: "value", SplitNumber: 4}),
	)
	return l
}

// lineChart is one whose axes do not begin at 0.
func lineChart(x string) *charts.Line {
	l := newLine(x, "dataMin", nil)
	l.YAxisList[0].Scale = opts.Bool(true)
	return l
}

// launches is a dot a launch.
func (v *view) launches(shown []int, name string) *charts.Scatter {
	s := charts.NewScatter()
	var dots []dot
	for at, i := range shown {
		values := v.res.Cells[i].Figure(name).Values
		for n, x := range values {
			dots = append(dots, dot{opts.ScatterData{Name: fmt.Sprintf("%s (attempt %d)", v.res.Cells[i].Repeated(),
				x.Attempt), Value: []any{at,
				digits(x.Value)}, Symbol: "circle", SymbolSize: 6},
				[2]float64{aside(n, len(values), len(shown)), 0}})
		}
	}
	return s.AddSeries("launches", nil, charts.WithItemStyleOpts(opts.ItemStyle{Color: "var(--dot)",
		BorderColor: "var(--page)", BorderWidth: 1}),
		func(s *charts.SingleSeries) { s.Data = dots })
}

// dot is a point that can stand beside its place.
type dot struct {
	opts.ScatterData
	SymbolOffset [2]float64 `json:"symbolOffset"`
}

// aside is by how many pixels dot n of so many is moved, left and right in turn: equal launches stay apart, and the
// interval's line, in the middle, stays free. A narrow bar keeps its dots.
func aside(n, of, bars int) float64 {
	if of == 1 {
		return 0
	}
	nearest, farthest := 7.0, min(24, 70/float64(bars))
	if farthest < nearest {
		nearest = farthest
	}
	x := nearest
	if pairs := (of - 1) / 2; pairs > 0 {
		x += (farthest - nearest) * float64(n/2) / float64(pairs)
	}
	if n%2 == 0 {
		return -math.Round(x)
	}
	return math.Round(x)
}

// whisker is a line from the lower to the upper end of an interval.
func whisker(at any, low, high float64) any {
	return []any{map[string]any{"coord": []any{at, low}}, map[string]any{"coord": []any{at, high}}}
}

func whiskers(intervals []any, width float32) charts.SeriesOpts {
	return func(s *charts.SingleSeries) {
		if len(intervals) > 0 {
			s.MarkLines = &opts.MarkLines{Data: intervals,
				MarkLineStyle: opts.MarkLineStyle{Symbol: []string{"none", "none"},
					Label:     &opts.Label{Show: opts.Bool(false)},
					LineStyle: &opts.LineStyle{Type: "solid", Width: width, Color: "var(--ink)"}}}
		}
	}
}

// digits rounds for drawing: a hundredth of a MiB, of a millisecond.
func digits(v float64) float64 { return math.Round(v*100) / 100 }

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
