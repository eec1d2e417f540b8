package reports

import (
	"fmt"
	"slices"
	"strconv"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/growth"
	"llmparity/internal/figure"
)

// alongAxes are the charts of cells that differ in the length of their prompts or in the number of concurrent requests.
var alongAxes = []struct {
	over            figure.Over
	axis, id, title string
	units           []string
}{
	{figure.Lengths, growth.AxisPrompt, "fig3_latency_vs_seqlen", "Latency by prompt length",
		[]string{"ms", "tokens/s"}},
	{figure.Lengths, growth.AxisPrompt, "fig4_mem_vs_seqlen", "Memory by prompt length", []string{"MiB"}},
	{figure.Requests, growth.AxisClients, "fig1_mem_vs_concurrency", "Memory by number of clients", []string{"MiB"}},
	{figure.Requests, growth.AxisBatch, "fig1_mem_vs_batch_size", "Memory by batch size", []string{"MiB"}},
	{figure.Requests, growth.AxisClients, "fig2_tps_vs_concurrency", "Tokens/s by number of clients",
		[]string{"tokens/s", "requests/s"}},
	{figure.Requests, growth.AxisBatch, "fig2_tps_vs_batch_size", "Tokens/s by batch size",
		[]string{"tokens/s", "requests/s"}},
	{figure.Requests, growth.AxisClients, "latency_vs_concurrency", "Latency by number of clients", []string{"ms"}},
	{figure.Requests, growth.AxisBatch, "latency_vs_batch_size", "Latency by batch size", []string{"ms"}},
}

// drawnOver draws the charts over lengths, or over requests.
func (v *view) drawnOver(what figure.Over) []chart {
	var out []chart
	for _, a := range alongAxes {
		if a.over == what {
			out = append(out, v.over(a.axis, chart{ID: a.id, Title: a.title}, figuresOver(what, a.units...))...)
		}
	}
	return out
}

func lengthsSection() section {
	return section{ID: "lengths", Title: "By prompt length", For: onPage, Across: "pair",
		Draw: func(v *view) []chart { return v.drawnOver(figure.Lengths) }}
}

// figuresOver are the figures with some units that are drawn along an axis, aggregate ones first.
func figuresOver(axis figure.Over, units ...string) []*figure.Row {
	out := figure.Rows(func(r *figure.Row) bool { return r.Over&axis != 0 && slices.Contains(units, r.Unit) })
	slices.SortStableFunc(out, func(a, b *figure.Row) int { return int(b.Headline) - int(a.Headline) })
	return out
}

// along is a cell's figure, or what its engine holds at the end of the measurement.
func along(c *compare.Cell, r *figure.Row) evidence.Figure {
	switch {
	case r.Inside == nil:
		return c.Figure(r.Name)
	case c.Memory == nil:
		return evidence.Figure{}
	}
	return evidence.Held(c.Memory.Measure, r.Name)
}

// over draws one line per engine along an axis of sweeps, one drawing per figure: medians with intervals.
func (v *view) over(axis string, out chart, figures []*figure.Row) []chart {
	title := ""
	for _, s := range v.res.Sweeps {
		if s.Axis == axis {
			title = s.Title
		}
	}
	out.Choice, out.Label = "Figure", "Lines of "+out.Title+" for each engine; the table below has the same figures"
	out.Table = &grid{Head: []string{"cell", title, "figure", "median", "95% interval", "launches"}}
	for _, f := range figures {
		l := lineChart(title)
		l.x["minInterval"] = 1 // half a client is none
		dots := &plot{}
		name, drawn := "", map[string]int{}
		for _, s := range v.res.Sweeps {
			if s.Axis != axis {
				continue
			}
			var data [][2]any
			var lines []any
			for n, i := range s.Cells {
				x := along(&v.res.Cells[i], f)
				if !x.Known() {
					continue
				}
				name = titleCase(x.Title) + " (" + x.Unit + ")"
				data = append(data, datum(s.At[n], x.Center()))
				if iv := x.Interval; iv != nil {
					lines = append(lines, whisker(s.At[n], fine(iv.Lo), s.At[n], fine(iv.Hi)))
				}
				out.Table.Rows = append(
					out.Table.Rows, []string{line(v.res.Cells[i].Label), num(s.At[n]), name, num(x.Center()),
						intervalWords(x), strconv.Itoa(x.N)})
			}
			if len(data) > 0 {
				l.add("line", line(s.Label), data, stroke(v.colour(s.Cells[0]), 2.4, dash(drawn[s.Engine]), true),
					whiskers(lines, 2))
				dots.add("scatter", line(s.Label)+", launches", v.launchesAt(s, f), inked(v.colour(s.Cells[0]), 0.6))
				drawn[s.Engine]++
			}
		}
		l.series = append(l.series, dots.series...)
		if name != "" {
			out.Drawings = append(out.Drawings,
				drawing{Name: name, Caption: "Lines: medians. Dots: launches. Vertical lines: 95% intervals, from six launches on.", Options: l.options()})
		}
	}
	if len(out.Drawings) == 0 {
		return nil
	}
	return []chart{out}
}

// launchesAt has one dot per launch.
func (v *view) launchesAt(s growth.Sweep, f *figure.Row) []options {
	var out []options
	for n, i := range s.Cells {
		c := &v.res.Cells[i]
		for _, x := range along(c, f).Values {
			out = append(out, spot(fmt.Sprintf("%s (attempt %d)", c.Repeated(), x.Attempt), digits(s.At[n]),
				fine(x.Value), 5))
		}
	}
	return out
}
