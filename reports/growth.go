package reports

import (
	"fmt"
	"math"
	"strconv"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/growth"
)

// How to read memory per token.
const (
	growthWords  = "Bytes per token: the measured slope with its 95% interval, beside what the KV cache needs by calculation."
	growthMethod = "Over cells that differ only in context or prompt length: one line through all launches. " +
		"Within launches: the median over launches of each launch's slope while tokens were generated. " +
		"Process memory includes more than the KV cache."
)

// growthSection shows memory per token.
func growthSection(res *compare.Result) section {
	slopes := &grid{Head: []string{"cells", "over", "memory", "bytes/token", "95% interval", "calculated", "result"}}
	each(res, func(g growing) {
		for _, r := range g.rates {
			if !r.Known() {
				continue
			}
			theory := "–"
			if g.theory != nil {
				theory = rate(g.theory.Bytes)
			}
			slopes.Rows = append(slopes.Rows, []string{line(g.who), g.over, line(r.Title), rate(r.Center()),
				rateInterval(r), theory, r.Verdict})
		}
	})
	if len(slopes.Rows) == 0 {
		return section{}
	}
	return section{ID: "growth", Title: "Memory per token", Words: []string{growthWords},
		Method: []string{growthMethod}, Draw: []func(*view) []chart{kvGrowth}, Across: "pair", Grid: slopes,
		Parts: []section{explainedFor(res, func(add func(string, ...evidence.Figure)) {
			each(res, func(g growing) {
				for _, r := range g.rates {
					if r.Known() {
						add(g.who, r.Figure)
					}
				}
			})
		})}}
}

// growing is a sweep, or a cell, with its slopes.
type growing struct {
	who, over string
	theory    *growth.Theory
	rates     []growth.Rate
}

// each visits sweeps, whose launches are independent, then slopes within launches.
func each(res *compare.Result, do func(growing)) {
	for _, s := range res.Sweeps {
		do(growing{s.Label, s.Title + ", over cells", s.Theory, s.Rates})
	}
	for i := range res.Cells {
		if g := res.Cells[i].Growth; g != nil {
			do(growing{res.Cells[i].Label, "within launches", g.Theory, g.Rates})
		}
	}
}

// rate writes bytes per token.
func rate(v float64) string {
	if math.Abs(v) >= 10 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return num(v)
}

func rateInterval(r growth.Rate) string {
	if r.Interval == nil {
		return r.Note
	}
	return rate(r.Interval.Lo) + " to " + rate(r.Interval.Hi)
}

// growthBudget bounds the points of all growth charts together.
const growthBudget = 20000

// kvGrowth draws one chart per sweep and cell, one drawing per source: points, their line and the calculated line.
func kvGrowth(v *view) []chart {
	lines := 1
	for i := range v.res.Cells {
		if g := v.res.Cells[i].Growth; g != nil {
			for _, r := range g.Rates {
				lines += min(len(r.Lines), v.launchesDrawn())
			}
		}
	}
	points := max(6, growthBudget/lines)
	var out []chart
	for n, s := range v.res.Sweeps {
		out = append(out, growthChart(chart{ID: fmt.Sprintf("growth-%s-%d", s.Axis, n),
			Title: line(s.Label) + ", over " + s.Title}, s.Rates, s.Theory,
			func(r growth.Rate) (string, map[string]any) { return "", v.overCells(s, r) })...)
	}
	for i := range v.res.Cells {
		if g := v.res.Cells[i].Growth; g != nil {
			out = append(out, growthChart(chart{ID: fmt.Sprintf("growth-%d", i), Cell: i + 1,
				Title: line(v.res.Cells[i].Label) + ", within launches"}, g.Rates, g.Theory,
				func(r growth.Rate) (string, map[string]any) {
					return v.fewerPoints(r), v.withinLaunches(i, r,
						points)
				})...)
		}
	}
	return out
}

// growthChart has one drawing per slope; no chart without any.
func growthChart(c chart, rates []growth.Rate, t *growth.Theory,
	draw func(growth.Rate) (more string, options map[string]any)) []chart {
	for _, r := range rates {
		if r.Fit != nil {
			more, options := draw(r)
			c.Drawings = append(c.Drawings, drawing{Name: line(r.Title), Caption: growthCaption(r, t) + more,
				Options: options})
		}
	}
	if len(c.Drawings) == 0 {
		return nil
	}
	c.Unit, c.Choice = "MiB", "Memory"
	c.Label = "Points of memory over tokens, their line and the calculated line for " + c.Title +
		"; the table below has the slopes"
	return []chart{c}
}

func growthCaption(r growth.Rate, t *growth.Theory) string {
	s := fmt.Sprintf("%s bytes/token, %s", rate(r.Center()), originWords(r.Origin))
	if r.Interval != nil {
		s += " (95% interval " + rateInterval(r) + ")"
	}
	if t != nil {
		s += fmt.Sprintf("; %s %s", t.Origin, rate(t.Bytes))
	}
	return s + ". " + titleCase(r.Verdict) + "."
}

// fewerPoints says if only some launches are drawn.
func (v *view) fewerPoints(r growth.Rate) string {
	if n := v.launchesDrawn(); len(r.Lines) > n {
		return fmt.Sprintf(" Points of the first %d launches.", n)
	}
	return ""
}

// withinLaunches draws memory relative to each launch's line at its first token.
func (v *view) withinLaunches(cell int, r growth.Rate, points int) map[string]any {
	l := lineChart("tokens, including the prompt")
	fitLines(l, "median slope", r.Fit, v.colour(cell))
	for _, launch := range r.Lines[:min(len(r.Lines), v.launchesDrawn())] {
		step := max(1, (len(launch.Points)+points-1)/points)
		var dots [][2]any
		for i, p := range launch.Points {
			if i%step == 0 || i == len(launch.Points)-1 {
				dots = append(dots, datum(p.Tokens, p.MiB))
			}
		}
		l.add("scatter", fmt.Sprintf("%s of attempt %d", v.res.Cells[cell].Repeated(), launch.Attempt), dots,
			small, inked(v.colour(cell), 0.5))
	}
	return l.options()
}

// overCells draws every launch at its cell's place on the axis.
func (v *view) overCells(s growth.Sweep, r growth.Rate) map[string]any {
	l := lineChart(s.Title)
	fitLines(l, "line through all launches", r.Fit, v.colour(s.Cells[0]))
	var dots []opts.ScatterData
	for _, p := range r.Points {
		dots = append(dots, spot(fmt.Sprintf("%s, attempt %d", line(v.res.Cells[p.Cell].Label), p.Attempt),
			digits(p.Tokens), fine(p.MiB), 5))
	}
	l.add("scatter", "launches", dots, inked("var(--dot)", 0.7))
	return l.options()
}

// fitLines adds the fitted line and, if there is one, the calculated line.
func fitLines(l plot, name string, f *growth.Fit, colour string) {
	from := datum(f.From.Tokens, f.From.MiB)
	l.add("line", name, [][2]any{from, datum(f.To.Tokens, f.To.MiB)}, stroke(colour, 3, "solid", false))
	if f.Theory != nil {
		l.add("line", "calculated", [][2]any{from, datum(f.Theory.Tokens, f.Theory.MiB)},
			stroke("var(--muted)", 2, "dashed", false))
	}
}

func small(s *charts.SingleSeries) { s.SymbolSize = 5 }
