package reports

import (
	"encoding/json"
	"math"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
)

// plot is a chart while it is made; its series may be of any kind. A colour may be var(--name): the page puts in the
// theme's.
type plot struct{ *charts.Line }

// style sets options of a series.
type style = charts.SeriesOpts

func newPlot(tooltip string, legend opts.Legend, grid opts.Grid, x opts.XAxis, y opts.YAxis) plot {
	p := plot{charts.NewLine()}
	grid.ContainLabel = opts.Bool(true)
	p.SetGlobalOptions(charts.WithAnimation(false), charts.WithLegendOpts(legend), charts.WithGridOpts(grid),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: tooltip}), charts.WithXAxisOpts(x),
		charts.WithYAxisOpts(y))
	return p
}

// add adds a series: a bar, line or scatter.
func (p plot) add(kind, name string, data any, looks ...style) {
	s := charts.SingleSeries{Name: name, Type: kind, Data: data}
	s.ConfigureSeriesOpts(looks...)
	p.MultiSeries = append(p.MultiSeries, s)
}

func (p plot) options() map[string]any {
	p.Validate()
	o := p.JSON()
	delete(o, "color") // the page has its own
	for _, part := range []string{"title", "toolbox"} {
		if text, err := json.Marshal(o[part]); err == nil && string(text) == "{}" {
			delete(o, part)
		}
	}
	return o
}

// newBar is a chart of horizontal bars: names of cells need the room to the left.
func newBar(labels []string, legend bool) plot {
	l := opts.Legend{Show: opts.Bool(false)}
	if legend {
		l = legendBelow(nil)
	}
	return newPlot("item", l, opts.Grid{Left: "4", Right: "20", Top: "2", Bottom: "4"},
		opts.XAxis{Type: "value", SplitNumber: 4}, opts.YAxis{Type: "category", Inverse: opts.Bool(true), Data: labels})
}

// legendBelow toggles series; those that are selected are shown at first.
func legendBelow(selected map[string]bool) opts.Legend {
	return opts.Legend{Show: opts.Bool(true), Type: "scroll", Bottom: "0", Left: "0", Right: "0", Icon: "roundRect",
		ItemWidth: 14, ItemHeight: 8, Selected: selected}
}

// newLine is a chart over a number.
func newLine(x string, from any, selected map[string]bool) plot {
	return newPlot("axis", legendBelow(selected), opts.Grid{Left: "4", Right: "14", Top: "26", Bottom: "58"},
		opts.XAxis{Type: "value", Name: x, NameLocation: "middle", NameGap: 26, Min: from, Max: "dataMax"},
		opts.YAxis{Type: "value", SplitNumber: 4})
}

// lineChart is one whose axes do not start at 0.
func lineChart(x string) plot {
	p := newLine(x, "dataMin", nil)
	p.YAxisList[0].Scale = opts.Bool(true)
	return p
}

// inked is a series' colour; with an opacity of 0 it is opaque.
func inked(colour string, opacity float32) style {
	o := opts.ItemStyle{Color: colour}
	if opacity > 0 {
		o.Opacity = opts.Float(opacity)
	}
	return charts.WithItemStyleOpts(o)
}

// stroke is a line's look; symbols only where there would be nothing else to see.
func stroke(colour string, width float32, kind string, symbols bool) style {
	return func(s *charts.SingleSeries) {
		s.LineStyle = &opts.LineStyle{Color: colour, Width: width, Type: kind}
		s.ItemStyle = &opts.ItemStyle{Color: colour}
		s.ShowSymbol, s.SymbolSize = opts.Bool(symbols), 4
	}
}

func faint(s *charts.SingleSeries) {
	s.LineStyle.Opacity = opts.Float(0.45)
	s.ItemStyle.Opacity = opts.Float(0.45)
}

// stacked puts bars of a chart upon one another.
var stacked = charts.WithBarChartOpts(opts.BarChart{Stack: "memory", BarWidth: "56%"})

// whiskers draws intervals.
func whiskers(intervals []any, width float32) style {
	return func(s *charts.SingleSeries) {
		if len(intervals) > 0 {
			s.MarkLines = &opts.MarkLines{Data: intervals,
				MarkLineStyle: opts.MarkLineStyle{Symbol: []string{"none", "none"},
					Label:     &opts.Label{Show: opts.Bool(false)},
					LineStyle: &opts.LineStyle{Type: "solid", Width: width, Color: "var(--ink)"}}}
		}
	}
}

// whisker is a line from one point to another.
func whisker(x1, y1, x2, y2 any) any {
	return []any{map[string]any{"coord": []any{x1, y1}}, map[string]any{"coord": []any{x2, y2}}}
}

// band is a stretch of an axis.
type band struct {
	name     string
	from, to float64
}

// banded puts stretches behind a series, each second one darker; names stand where there is room.
func banded(all []band) style {
	return func(s *charts.SingleSeries) {
		if len(all) == 0 {
			return
		}
		length := all[len(all)-1].to - all[0].from
		data := []any{}
		for n, b := range all {
			if length <= 0 || (b.to-b.from)/length < 0.08 {
				b.name = ""
			}
			fill := []string{"transparent", "var(--band)"}[n%2]
			data = append(data, []opts.MarkAreaData{{Name: b.name, XAxis: b.from,
				MarkAreaStyle: opts.MarkAreaStyle{ItemStyle: &opts.ItemStyle{Color: fill}}}, {XAxis: b.to}})
		}
		s.MarkAreas = &opts.MarkAreas{Data: data, MarkAreaStyle: opts.MarkAreaStyle{Label: &opts.Label{
			Show: opts.Bool(true), Position: "top", FontSize: 11, Color: "var(--muted)"}}}
	}
}

// barData is a value of a bar; the library's word for none is "-".
func barData(v float64) opts.BarData {
	if math.IsNaN(v) {
		return opts.BarData{Value: "-"}
	}
	return opts.BarData{Value: fine(v)}
}

// datum is a point; a missing value is a gap.
func datum(x, y float64) [2]any {
	if math.IsNaN(y) {
		return [2]any{digits(x), "-"}
	}
	return [2]any{digits(x), fine(y)}
}

// spot is a named dot.
func spot(name string, x, y float64, size int) opts.ScatterData {
	return opts.ScatterData{Name: name, Value: []any{x, y}, Symbol: "circle", SymbolSize: size}
}

// digits rounds for drawing: a hundredth of a MiB, of a millisecond.
func digits(v float64) float64 { return math.Round(v*100) / 100 }
