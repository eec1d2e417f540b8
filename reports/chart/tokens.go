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
	for i := range v.Res.Cells {
		if o := v.Res.Cells[i].OverTokens; o != nil {
			for _, l := range o.Lines {
				lines += min(len(l.Launches), v.launchesDrawn()) + 3
			}
		}
	}
	points := max(12, alignedBudget/lines)
	rows := min(8, max(3, 80/max(1, len(v.Res.Cells))))
	var out []Chart
	for i := range v.Res.Cells {
		c := &v.Res.Cells[i]
		if c.OverTokens == nil || len(c.OverTokens.Lines) == 0 {
			continue
		}
		x := Chart{ID: fmt.Sprintf("tokens-%d", i), Title: plain.Line(c.Label), Unit: "MiB", Cell: i + 1,
			Choice: "Memory", Table: alignedTable(c.OverTokens, rows),
			Label: "Lines of memory over the number of tokens for " + plain.Line(c.Label) +
				", one per launch, and their median; a table follows"}
		for _, l := range c.OverTokens.Lines {
			x.Drawings = append(x.Drawings, Drawing{Name: plain.Line(l.Title), Caption: v.alignedCaption(c, l),
				Options: v.alignedLines(i, l, points)})
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
		s += fmt.Sprintf("Thin lines: the first %d. ", n)
	}
	return s + "The memory axis does not start at 0."
}

func (v *View) alignedLines(cell int, a growth.Aligned, points int) map[string]any {
	c := &v.Res.Cells[cell]
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
		add(c.LaunchName(launch.Attempt), data,
			stroke(colour, 1, "solid", lonely(launch.Values)), faint)
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
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		return digits(v)
	}
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

// KvGrowth draws one chart per sweep, one drawing per source: points, their line and the calculated line.
func KvGrowth(v *View) []Chart {
	var out []Chart
	for n, s := range v.Res.Sweeps {
		c := Chart{ID: fmt.Sprintf("growth-%s-%d", s.Axis, n), Title: plain.Line(s.Label) + ", over " + s.Title,
			Unit: "MiB", Choice: "Memory"}
		c.Label = "Points of memory over tokens, their line and the calculated line for " + c.Title +
			"; the table below has the slopes"
		for _, r := range s.Rates {
			if r.Fit != nil {
				c.Drawings = append(c.Drawings, Drawing{Name: plain.Line(r.Title), Caption: growthCaption(r, s.Theory),
					Options: v.overCells(s, r)})
			}
		}
		if len(c.Drawings) > 0 {
			out = append(out, c)
		}
	}
	return out
}

func growthCaption(r growth.Rate, t *growth.Theory) string {
	s := fmt.Sprintf("%s bytes/token, %s", plain.Rate(r.Center()), plain.OriginWords(r.Origin))
	if r.Interval != nil {
		s += " (95% interval " + plain.RateInterval(r) + ")"
	}
	if t != nil {
		s += "; calculated " + plain.Rate(t.Bytes)
	}
	return s + ". " + plain.TitleCase(r.Verdict) + "."
}

// overCells draws every launch at its cell's place on the axis, the line through them and the calculated line.
func (v *View) overCells(s growth.Sweep, r growth.Rate) map[string]any {
	l := lineChart(inTokens(s.Title))
	from := datum(r.Fit.From.Tokens, r.Fit.From.MiB)
	addLine(l, "line through all launches", [][2]any{from, datum(r.Fit.To.Tokens, r.Fit.To.MiB)},
		stroke(v.Colour(s.Cells[0]), 3, "solid", false))
	if t := r.Fit.Theory; t != nil {
		addLine(l, "calculated", [][2]any{from, datum(t.Tokens, t.MiB)}, stroke("var(--muted)", 2, "dashed", false))
	}
	var dots []opts.ScatterData
	for _, p := range r.Points {
		c := &v.Res.Cells[p.Cell]
		dots = append(dots, spot(plain.Line(c.Label)+", "+c.LaunchName(p.Attempt), digits(p.Tokens), fine(p.MiB), 5))
	}
	l.Overlap(charts.NewScatter().AddSeries("launches", dots, inked("var(--dot)", 0.7)))
	return options(l)
}
