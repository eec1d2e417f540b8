package chart

import (
	"maps"
	"math"
)

// options are options of echarts as its documentation names them, of a chart or of a part of one. A colour may be
// var(--name): the page puts in the theme's.
type options map[string]any

// plot is a chart while it is made.
type plot struct {
	tooltip      string // what it is about: axis or item
	legend, grid options
	x, y         options // the axes
	series       []options
}

// add adds a series: a bar, line or scatter.
func (p *plot) add(kind, name string, data any, looks ...options) {
	s := options{"type": kind, "name": name, "data": data}
	for _, look := range looks {
		maps.Copy(s, look)
	}
	p.series = append(p.series, s)
}

func (p *plot) options() options {
	p.grid["containLabel"] = true
	return options{"animation": false, "tooltip": options{"show": true, "trigger": p.tooltip}, "legend": p.legend,
		"grid": []options{p.grid}, "xAxis": []options{p.x}, "yAxis": []options{p.y}, "series": p.series}
}

// newBar is a chart of horizontal bars: names of cells need the room to the left.
func newBar(labels []string, legend options) *plot {
	return &plot{tooltip: "item", legend: legend, grid: options{"left": "4", "right": "20", "top": "2", "bottom": "4"},
		x: options{"type": "value", "splitNumber": 4}, y: options{"type": "category", "inverse": true, "data": labels}}
}

// legendBelow toggles series.
func legendBelow() options {
	return options{"show": true, "type": "scroll", "bottom": "0", "left": "0", "right": "0", "icon": "roundRect",
		"itemWidth": 14, "itemHeight": 8}
}

// newLine is a chart over a number.
func newLine(x string, from any) *plot {
	return &plot{tooltip: "axis", legend: legendBelow(),
		grid: options{"left": "4", "right": "14", "top": "26", "bottom": "58"},
		x: options{"type": "value", "name": x, "nameLocation": "middle", "nameGap": 26, "min": from,
			"max": "dataMax"},
		y: options{"type": "value", "splitNumber": 4}}
}

// lineChart is one whose axes do not start at 0.
func lineChart(x string) *plot {
	p := newLine(x, "dataMin")
	p.y["scale"] = true
	return p
}

// inked is a series' colour; with an opacity of 0 it is opaque.
func inked(colour string, opacity float64) options {
	style := options{"color": colour}
	if opacity > 0 {
		style["opacity"] = opacity
	}
	return options{"itemStyle": style}
}

// stroke is a line's look; symbols only where there would be nothing else to see.
func stroke(colour string, width float64, kind string, symbols bool) options {
	return options{"lineStyle": options{"color": colour, "width": width, "type": kind},
		"itemStyle": options{"color": colour}, "showSymbol": symbols, "symbolSize": 4}
}

// faint is a thin line that others are read before.
func faint(colour, kind string, symbols bool) options {
	return options{"lineStyle": options{"color": colour, "width": 1, "type": kind, "opacity": 0.45},
		"itemStyle": options{"color": colour, "opacity": 0.45}, "showSymbol": symbols, "symbolSize": 4}
}

// stacked puts bars of a chart upon one another.
var stacked = options{"stack": "memory", "barWidth": "56%"}

// whiskers draws intervals.
func whiskers(intervals []any, width float64) options {
	if len(intervals) == 0 {
		return nil
	}
	return options{"markLine": options{"data": intervals, "symbol": []string{"none", "none"},
		"label": options{"show": false}, "lineStyle": options{"type": "solid", "width": width, "color": "var(--ink)"}}}
}

// whisker is a line from one point to another.
func whisker(x1, y1, x2, y2 any) any {
	return []options{{"coord": []any{x1, y1}}, {"coord": []any{x2, y2}}}
}

// band is a stretch of an axis.
type band struct {
	name     string
	from, to float64
}

// banded puts stretches behind a series, each second one darker; names stand where there is room.
func banded(all []band) options {
	if len(all) == 0 {
		return nil
	}
	length := all[len(all)-1].to - all[0].from
	var data [][]options
	for n, b := range all {
		begin := options{"xAxis": b.from,
			"itemStyle": options{"color": []string{"transparent", "var(--band)"}[n%2]}}
		if length > 0 && (b.to-b.from)/length >= 0.08 {
			begin["name"] = b.name
		}
		data = append(data, []options{begin, {"xAxis": b.to}})
	}
	return options{"markArea": options{"data": data,
		"label": options{"show": true, "position": "top", "fontSize": 11, "color": "var(--muted)"}}}
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
func spot(name string, x, y float64, size int) options {
	return options{"name": name, "value": []any{x, y}, "symbol": "circle", "symbolSize": size}
}

// digits rounds for drawing: a hundredth of a MiB, of a millisecond.
func digits(v float64) float64 { return math.Round(v*100) / 100 }
