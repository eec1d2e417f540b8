package reports

import (
	"fmt"
	"math"
	"strconv"

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
		Method: []string{growthMethod}, Draw: kvGrowth, Across: "pair", Grid: slopes,
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

// kvGrowth draws one chart per sweep, one drawing per source: points, their line and the calculated line.
func kvGrowth(v *view) []chart {
	var out []chart
	for n, s := range v.res.Sweeps {
		c := chart{ID: fmt.Sprintf("growth-%s-%d", s.Axis, n), Title: line(s.Label) + ", over " + s.Title, Unit: "MiB",
			Choice: "Memory"}
		c.Label = "Points of memory over tokens, their line and the calculated line for " + c.Title +
			"; the table below has the slopes"
		for _, r := range s.Rates {
			if r.Fit != nil {
				c.Drawings = append(c.Drawings, drawing{Name: line(r.Title), Caption: growthCaption(r, s.Theory),
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
	s := fmt.Sprintf("%s bytes/token, %s", rate(r.Center()), originWords(r.Origin))
	if r.Interval != nil {
		s += " (95% interval " + rateInterval(r) + ")"
	}
	if t != nil {
		s += fmt.Sprintf("; %s %s", t.Origin, rate(t.Bytes))
	}
	return s + ". " + titleCase(r.Verdict) + "."
}

// overCells draws every launch at its cell's place on the axis, the line through them and the calculated line.
func (v *view) overCells(s growth.Sweep, r growth.Rate) options {
	l := lineChart(s.Title)
	from := datum(r.Fit.From.Tokens, r.Fit.From.MiB)
	l.add("line", "line through all launches", [][2]any{from, datum(r.Fit.To.Tokens, r.Fit.To.MiB)},
		stroke(v.colour(s.Cells[0]), 3, "solid", false))
	if t := r.Fit.Theory; t != nil {
		l.add("line", "calculated", [][2]any{from, datum(t.Tokens, t.MiB)}, stroke("var(--muted)", 2, "dashed", false))
	}
	var dots []options
	for _, p := range r.Points {
		dots = append(dots, spot(fmt.Sprintf("%s, attempt %d", line(v.res.Cells[p.Cell].Label), p.Attempt),
			digits(p.Tokens), fine(p.MiB), 5))
	}
	l.add("scatter", "launches", dots, inked("var(--dot)", 0.7))
	return l.options()
}
