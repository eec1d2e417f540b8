package reports

import (
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

func peaksSection() section {
	return section{ID: "peaks", Title: "Peaks", For: onPage, Draw: bars("peaks", figure.PeakPSS, "Peak memory"),
		Words: []string{barWords + " Memory is total PSS."}}
}

// barWords say how to read bars.
const barWords = "Bar: median. Dots: launches. Line: 95% interval of the median, from six launches on."

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
	var intervals []*stats.Interval
	for _, i := range shown {
		f := v.res.Cells[i].Figure(name)
		labels = append(labels, line(v.res.Cells[i].Label)+"\n"+num(f.Center())+" "+f.Unit)
		data = append(data, opts.BarData{Value: digits(f.Center()), ItemStyle: &opts.ItemStyle{Color: v.colour(i)}})
		intervals = append(intervals, f.Interval)
	}
	bar := newBar(labels, false)
	bar.add("bar", series, data, charts.WithBarChartOpts(opts.BarChart{BarWidth: "46%"}),
		whiskers(intervalLines(intervals), 3))
	return bar
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

// ends are the lower end of the lowest bar and the upper end of the highest.
func (t *barTable) ends() (lowest, highest float64) {
	for n := range t.bars {
		down, up := 0.0, 0.0
		for _, s := range t.series {
			if v := s.values[n]; v < 0 {
				down += v
			} else if v > 0 {
				up += v
			}
		}
		lowest, highest = min(lowest, down), max(highest, up)
	}
	return lowest, highest
}

func (t *barTable) options() map[string]any {
	bar := newBar(t.bars, true)
	if lowest, highest := t.ends(); lowest > -0.02*highest { // a remainder just below 0 needs no axis of its own
		bar.XAxisList[0].Min = 0
	}
	for _, s := range t.series {
		var data []opts.BarData
		for _, v := range s.values {
			data = append(data, barData(v))
		}
		looks := s.looks
		if !t.apart {
			looks = append(looks, stacked)
		}
		bar.add("bar", s.name, data, looks...)
	}
	if n := len(bar.MultiSeries); n > 0 {
		whiskers(intervalLines(t.intervals), 3)(&bar.MultiSeries[n-1])
	}
	return bar.options()
}

// intervalLines are lines along bars from the lower to the upper end of each interval.
func intervalLines(all []*stats.Interval) []any {
	var out []any
	for bar, iv := range all {
		if iv != nil {
			out = append(out, whisker(digits(iv.Lo), bar, digits(iv.Hi), bar))
		}
	}
	return out
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
