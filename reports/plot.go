package reports

import "math"

// option is a part of a chart's options, as echarts takes them. A colour may be var(--name): the page puts in the
// theme's.
type option = map[string]any

// plot is a chart's options while it is made.
type plot struct {
	x, y, grid, legend option
	tooltip            string // what shows one: item or axis
	series             []option
}

// style sets options of a series.
type style func(option)

func (p *plot) add(kind, name string, data any, styles ...style) {
	s := option{"type": kind, "name": name, "data": data}
	for _, set := range styles {
		set(s)
	}
	p.series = append(p.series, s)
}

func (p *plot) options() option {
	return option{"animation": false, "tooltip": option{"show": true, "trigger": p.tooltip}, "legend": p.legend,
		"grid": []option{p.grid}, "xAxis": []option{p.x}, "yAxis": []option{p.y}, "series": p.series}
}

// newBar is a chart of horizontal bars: names of cells need the room to the left.
func newBar(labels []string, legend bool) *plot {
	p := &plot{tooltip: "item", legend: option{"show": false}, x: option{"type": "value", "splitNumber": 4},
		y:    option{"type": "category", "inverse": true, "data": labels},
		grid: option{"left": "4", "right": "20", "top": "2", "bottom": "4", "containLabel": true}}
	if legend {
		p.legend = legendBelow(nil)
	}
	return p
}

// legendBelow toggles series; those that are selected are shown at first.
func legendBelow(selected map[string]bool) option {
	o := option{"show": true, "type": "scroll", "bottom": "0", "left": "0", "right": "0", "icon": "roundRect",
		"itemWidth": 14, "itemHeight": 8}
	if selected != nil {
		o["selected"] = selected
	}
	return o
}

// newLine is a chart over a number.
func newLine(x string, from any, selected map[string]bool) *plot {
	return &plot{tooltip: "axis", legend: legendBelow(selected), y: option{"type": "value", "splitNumber": 4},
		x:    option{"type": "value", "name": x, "nameLocation": "middle", "nameGap": 26, "min": from, "max": "dataMax"},
		grid: option{"left": "4", "right": "14", "top": "26", "bottom": "58", "containLabel": true}}
}

// lineChart is one whose axes do not start at 0.
func lineChart(x string) *plot {
	p := newLine(x, "dataMin", nil)
	p.y["scale"] = true
	return p
}

// with sets one option.
func with(name string, value any) style { return func(s option) { s[name] = value } }

// inked is a series' colour; with an opacity of 0 it is opaque.
func inked(colour string, opacity float64) style {
	o := option{"color": colour}
	if opacity > 0 {
		o["opacity"] = opacity
	}
	return with("itemStyle", o)
}

// stroke is a line's look; symbols only where there would be nothing else to see.
func stroke(colour string, width float64, kind string, symbols bool) style {
	return func(s option) {
		s["lineStyle"] = option{"color": colour, "width": width, "type": kind}
		s["itemStyle"] = option{"color": colour}
		s["showSymbol"], s["symbolSize"] = symbols, 4
	}
}

func faint(s option) {
	for _, part := range []string{"lineStyle", "itemStyle"} {
		s[part].(option)["opacity"] = 0.45
	}
}

// stacked puts bars of a chart upon one another.
func stacked(s option) { s["stack"], s["barWidth"] = "memory", "56%" }

// whiskers draws intervals.
func whiskers(intervals []any, width float64) style {
	return func(s option) {
		if len(intervals) > 0 {
			s["markLine"] = option{"data": intervals, "symbol": []string{"none", "none"},
				"label":     option{"show": false},
				"lineStyle": option{"type": "solid", "width": width, "color": "var(--ink)"}}
		}
	}
}

// whisker is a line from one point to another.
func whisker(x1, y1, x2, y2 any) any {
	return []option{{"coord": []any{x1, y1}}, {"coord": []any{x2, y2}}}
}

// band is a stretch of an axis.
type band struct {
	name     string
	from, to float64
}

// banded puts stretches behind a series, each second one darker; names stand where there is room.
func banded(all []band) style {
	return func(s option) {
		if len(all) == 0 {
			return
		}
		length := all[len(all)-1].to - all[0].from
		data := [][2]option{}
		for n, b := range all {
			from := option{"xAxis": b.from, "itemStyle": option{"color": []string{"transparent", "var(--band)"}[n%2]}}
			if length > 0 && (b.to-b.from)/length >= 0.08 {
				from["name"] = b.name
			}
			data = append(data, [2]option{from, {"xAxis": b.to}})
		}
		s["markArea"] = option{"data": data,
			"label": option{"show": true, "position": "top", "fontSize": 11, "color": "var(--muted)"}}
	}
}

// barData is a value of a bar; the library's word for none is "-".
func barData(v float64) option {
	if math.IsNaN(v) {
		return option{"value": "-"}
	}
	return option{"value": digits(v)}
}

// datum is a point; a missing value is a gap.
func datum(x, y float64) [2]any {
	if math.IsNaN(y) {
		return [2]any{digits(x), "-"}
	}
	return [2]any{digits(x), fine(y)}
}

// spot is a named dot.
func spot(name string, x, y float64, size int) option {
	return option{"name": name, "value": []any{x, y}, "symbol": "circle", "symbolSize": size}
}

// digits rounds for drawing: a hundredth of a MiB, of a millisecond.
func digits(v float64) float64 { return math.Round(v*100) / 100 }
