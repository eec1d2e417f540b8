package chart

import (
	"math"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"
)

// style sets options of a series. A colour may be var(--name): the page puts in the theme's.
type style = charts.SeriesOpts

// global has the options of a whole chart. What a tooltip is about is axis or item.
func global(tooltip string, legend opts.Legend, grid opts.Grid, x opts.XAxis, y opts.YAxis) []charts.GlobalOpts {
	grid.ContainLabel = opts.Bool(true)
	return []charts.GlobalOpts{charts.WithAnimation(false), charts.WithLegendOpts(legend), charts.WithGridOpts(grid),
		charts.WithTooltipOpts(opts.Tooltip{Show: opts.Bool(true), Trigger: tooltip}), charts.WithXAxisOpts(x),
		charts.WithYAxisOpts(y)}
}

// options are what the page gives echarts of a chart. It has colours and a title of its own.
func options(c interface {
	Validate()
	JSON() map[string]any
}) map[string]any {
	c.Validate()
	o := c.JSON()
	for _, part := range []string{"color", "title", "toolbox"} {
		delete(o, part)
	}
	return o
}

// newBar is a chart of horizontal bars: names of cells need the room to the left.
func newBar(labels []string, legend opts.Legend) *charts.Bar {
	bar := charts.NewBar().SetXAxis(labels).XYReversal()
	bar.SetGlobalOptions(global("item", legend, opts.Grid{Left: "4", Right: "20", Top: "2", Bottom: "4"},
		opts.XAxis{Type: "value", SplitNumber: 4}, opts.YAxis{Type: "category", Inverse: opts.Bool(true)})...)
	return bar
}

// legendBelow toggles series.
func legendBelow() opts.Legend {
	return opts.Legend{Show: opts.Bool(true), Type: "scroll", Bottom: "0", Left: "0", Right: "0", Icon: "roundRect",
		ItemWidth: 14, ItemHeight: 8}
}

// newLine is a chart over a number.
func newLine(x string, from any) *charts.Line {
	l := charts.NewLine()
	l.SetGlobalOptions(global("axis", legendBelow(), opts.Grid{Left: "4", Right: "14", Top: "26", Bottom: "58"},
		opts.XAxis{Type: "value", Name: x, NameLocation: "middle", NameGap: 26, Min: from, Max: "dataMax"},
		opts.YAxis{Type: "value", SplitNumber: 4})...)
	return l
}

// lineChart is one whose axes do not start at 0.
func lineChart(x string) *charts.Line {
	l := newLine(x, "dataMin")
	l.YAxisList[0].Scale = opts.Bool(true)
	return l
}

// inTokens is the title of an axis with its unit, where that does not stand in it.
func inTokens(title string) string {
	if title == "context" {
		return "context (tokens)"
	}
	return title
}

// addLine adds a series of pairs; AddSeries has an object for each point, which makes pages larger.
func addLine(l *charts.Line, name string, data [][2]any, looks ...style) {
	s := charts.SingleSeries{Type: "line", Name: name, Data: data}
	s.ConfigureSeriesOpts(looks...)
	l.MultiSeries = append(l.MultiSeries, s)
}

// inked is a series' colour; with an opacity of 0 it is opaque.
func inked(colour string, opacity float32) style {
	ink := opts.ItemStyle{Color: colour}
	if opacity > 0 {
		ink.Opacity = opts.Float(opacity)
	}
	return charts.WithItemStyleOpts(ink)
}

// stroke is a line's look; symbols only where there would be nothing else to see.
func stroke(colour string, width float32, kind string, symbols bool) style {
	return func(s *charts.SingleSeries) {
		s.LineStyle = &opts.LineStyle{Color: colour, Width: width, Type: kind}
		s.ItemStyle = &opts.ItemStyle{Color: colour}
		s.ShowSymbol, s.SymbolSize = opts.Bool(symbols), 4
	}
}

// faint, after stroke, makes a line that others are read before.
func faint(s *charts.SingleSeries) {
	s.LineStyle.Opacity, s.ItemStyle.Opacity = opts.Float(0.45), opts.Float(0.45)
}

// whiskers draws intervals.
func whiskers(intervals []opts.MarkLineNameCoordItem, width float32) style {
	return func(s *charts.SingleSeries) {
		if len(intervals) > 0 {
			charts.WithMarkLineNameCoordItemOpts(intervals...)(s)
			s.MarkLines.MarkLineStyle = opts.MarkLineStyle{Symbol: []string{"none", "none"},
				Label:     &opts.Label{Show: opts.Bool(false)},
				LineStyle: &opts.LineStyle{Type: "solid", Width: width, Color: "var(--ink)"}}
		}
	}
}

// whisker is a line from one point to another.
func whisker(x1, y1, x2, y2 any) opts.MarkLineNameCoordItem {
	return opts.MarkLineNameCoordItem{Coordinate0: []any{x1, y1}, Coordinate1: []any{x2, y2}}
}

// band is a stretch of an axis.
type band struct {
	name     string
	from, to float64
}

// banded puts stretches behind a series, each second one darker; names stand where there is room.
func banded(all []band) style {
	return func(s *charts.SingleSeries) {
		for n, b := range all {
			begin := opts.MarkAreaData{XAxis: b.from}
			begin.ItemStyle = &opts.ItemStyle{Color: []string{"transparent", "var(--band)"}[n%2]}
			if length := all[len(all)-1].to - all[0].from; length > 0 && (b.to-b.from)/length >= 0.08 {
				begin.Name = b.name
			}
			charts.WithMarkAreaData([]opts.MarkAreaData{begin, {XAxis: b.to}})(s)
			s.MarkAreas.Label = &opts.Label{Show: opts.Bool(true), Position: "top", FontSize: 11, Color: "var(--muted)"}
		}
	}
}

// orGap is a value; the library's word for none is "-".
func orGap(v float64) any {
	if math.IsNaN(v) {
		return "-"
	}
	return fine(v)
}

// datum is a point.
func datum(x, y float64) [2]any { return [2]any{digits(x), orGap(y)} }

// spot is a named dot.
func spot(name string, x, y float64, size int) opts.ScatterData {
	return opts.ScatterData{Name: name, Value: []any{x, y}, SymbolSize: size}
}

// digits rounds for drawing: a hundredth of a MiB, of a millisecond.
func digits(v float64) float64 { return math.Round(v*100) / 100 }
