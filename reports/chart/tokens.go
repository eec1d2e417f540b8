package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/growth"
	"llmparity/reports/plain"
)

// alignedBudget bounds the points of all lines over tokens together.
const alignedBudget = 20000

// MemoryOverTokens draws one chart per cell, with one drawing per quantity: launches, their median and its interval.
func MemoryOverTokens(v *View) []Chart {
	lines := 1
	for _, c := range v.Res.Cells {
		if o := c.OverTokens; o != nil {
			for _, l := range o.Lines {
				lines += min(len(l.Launches), v.launchesDrawn()) + 3
			}
		}
	}
	points := max(12, alignedBudget/lines)
	rows := min(8, max(3, 80/max(1, len(v.Res.Cells))))
	var out []Chart
	for i, c := range v.Res.Cells {
		if c.OverTokens == nil || len(c.OverTokens.Lines) == 0 {
			continue
		}
		x := Chart{ID: fmt.Sprintf("tokens-%d", i), Title: plain.Line(c.Label), Unit: "MiB", Cell: i + 1,
			Choice: "Memory", Table: alignedTable(c.OverTokens, rows),
			Label: "Lines of memory over the number of tokens for " + plain.Line(c.Label) +
				", one per launch, and their median; a table follows"}
		for _, l := range c.OverTokens.Lines {
			drawn := v.alignedExtent(l)
			x.Drawings = append(x.Drawings, Drawing{Name: plain.Line(l.Title),
				Caption: v.alignedCaption(c, l) + drawn.words(),
				Options: drawn.broken(v.alignedLines(i, l, points), "yAxis")})
		}
		out = append(out, x)
	}
	return out
}

func (v *View) alignedCaption(c *compare.Cell, l growth.Aligned) string {
	s := fmt.Sprintf("%d of %d counted %s. ", l.N, c.Launches.Counted, c.Several())
	if slices.ContainsFunc(l.Median, func(p growth.AlignedPoint) bool { return p.Lo != nil }) {
		s += "Band: 95% interval of the median. "
	} else {
		s += "No interval: too few launches. "
	}
	if n := v.launchesDrawn(); len(l.Launches) > n {
		s += fmt.Sprintf("Thin lines: the first %d launches.", n)
	} else {
		s += "Thin lines: launches."
	}
	return s
}

// alignedExtent is the range of the lines of launches, and of the interval of their median.
func (v *View) alignedExtent(a growth.Aligned) extent {
	var e extent
	for _, launch := range a.Launches[:min(len(a.Launches), v.launchesDrawn())] {
		e.add(launch.Values...)
	}
	for _, p := range a.Median {
		e.add(p.Median)
		if p.Lo != nil {
			e.add(*p.Lo, *p.Hi)
		}
	}
	return e
}

func (v *View) alignedLines(cell int, a growth.Aligned, points int) map[string]any {
	c := v.Res.Cells[cell]
	tokens := c.OverTokens.Tokens
	step := max(1, (len(tokens)+points-1)/points)
	l := lineChart(c.OverTokens.Axis)
	drawn := func(i, of int) bool { return i%step == 0 || i == of-1 }
	var mid, lo, hi [][2]any
	for i, p := range a.Median {
		if !drawn(i, len(a.Median)) {
			continue
		}
		mid = append(mid, datum(float64(p.Token), p.Median))
		if p.Lo != nil {
			lo, hi = append(lo, datum(float64(p.Token), *p.Lo)), append(hi, datum(float64(p.Token), *p.Hi))
		}
	}
	colour := v.Colour(cell)
	add := func(name string, data [][2]any, looks ...style) {
		if len(l.MultiSeries) == 0 {
			looks = append(looks, banded([]band{{"measure: prefill", 0, 1},
				{"measure: decode", 1, float64(tokens[len(tokens)-1])}}))
		}
		addLine(l, name, data, looks...)
	}
	if len(mid) > 0 {
		add("median", mid, stroke(colour, 3, "solid", len(mid) == 1))
	}
	for _, launch := range a.Launches[:min(len(a.Launches), v.launchesDrawn())] {
		var data [][2]any
		for i, y := range launch.Values {
			if drawn(i, len(tokens)) {
				data = append(data, datum(float64(tokens[i]), y))
			}
		}
		add("launches", data, stroke("var(--muted)", 1, "solid", lonely(launch.Values)), faint)
	}
	if len(lo) > 0 { // drawn as what lies above its lower end; the page keeps it out of tooltips
		band := hi
		for i := range band {
			band[i][1] = fine(band[i][1].(float64) - lo[i][1].(float64))
		}
		dotted := stroke(colour, 1, "dotted", false)
		stacked := func(s *charts.SingleSeries) { s.Stack = "interval" }
		add(intervalName, lo, dotted, faint, stacked)
		add(intervalName, band, dotted, faint, stacked,
			charts.WithAreaStyleOpts(opts.AreaStyle{Color: colour, Opacity: opts.Float(0.2)}))
	}
	return options(l)
}

const intervalName = "95% interval"

// lonely tells that a value has gaps on both sides, so that no line would show it.
func lonely(values []float64) bool {
	there := func(i int) bool { return i >= 0 && i < len(values) && !math.IsNaN(values[i]) }
	for i := range values {
		if there(i) && !there(i-1) && !there(i+1) {
			return true
		}
	}
	return false
}

// fine rounds for drawing: to a thousandth, or small values to four digits.
func fine(v float64) float64 {
	if a := math.Abs(v); a >= 1 || a == 0 {
		return math.Round(v*1000) / 1000
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // what was formatted parses
	return r
}

// alignedTable has some of the tokens, including the first and last; the record has all.
func alignedTable(o *growth.OverTokens, rows int) *plain.Grid {
	t := &plain.Grid{Head: []string{"memory", o.Axis, "median (MiB)", "95% interval", "launches"}}
	for _, l := range o.Lines {
		step := max(1, (len(l.Median)+rows-2)/(rows-1))
		for i, p := range l.Median {
			if i%step != 0 && i != len(l.Median)-1 {
				continue
			}
			between := "too few launches"
			if p.Lo != nil {
				between = plain.Mib(*p.Lo) + " to " + plain.Mib(*p.Hi)
			}
			t.Rows = append(t.Rows, []string{plain.Line(l.Title), strconv.Itoa(p.Token), plain.Mib(p.Median), between,
				strconv.Itoa(p.N)})
		}
		if len(l.Median) == 0 {
			t.Rows = append(t.Rows, []string{plain.Line(l.Title), "–", "no median: launches have readings at different tokens",
				"", strconv.Itoa(l.N)})
		}
	}
	return t
}

func growthCaption(r growth.Rate, t *growth.Theory) string {
	s := fmt.Sprintf("%s bytes/token, %s", plain.Rate(r.Center()), plain.OriginWords(r.Origin))
	switch between := plain.RateInterval(r); {
	case r.Interval == nil:
	case between == plain.NoSpread:
		s += " (" + between + ": every launch gave the same value)"
	default:
		s += " (95% interval " + between + ")"
	}
	if t != nil {
		s += "; calculated " + plain.Rate(t.Bytes)
	}
	return s + ". " + plain.TitleCase(r.Verdict) + "."
}
