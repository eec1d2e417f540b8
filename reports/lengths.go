package reports

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/growth"
	"llmparity/internal/figure"
)

func lengthsSection() section {
	return section{ID: "lengths", Title: "By prompt length", For: onPage, Across: "pair",
		Draw: []func(*view) []chart{func(v *view) []chart {
			return append(v.over(growth.AxisPrompt, chart{ID: "fig3_latency_vs_seqlen",
				Title: "Latency by prompt length"},
				figuresOver(figure.Lengths, "ms", "tokens/s")),
				v.over(growth.AxisPrompt, chart{ID: "fig4_mem_vs_seqlen", Title: "Memory by prompt length"},
					figuresOver(figure.Lengths, "MiB"))...)
		}}}
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

// manyAtOnce are the axes of concurrent requests, with the ends of chart ids and titles.
func manyAtOnce() [][3]string {
	return [][3]string{{growth.AxisClients, "concurrency", "number of clients"},
		{growth.AxisBatch, "batch_size", "batch size"}}
}

// overRequests draws memory, speed and latency by the number of concurrent requests.
func overRequests(v *view) []chart {
	return slices.Concat(v.overRequests("fig1_mem_vs_", "Memory by ", "MiB"),
		v.overRequests("fig2_tps_vs_", "Tokens/s by ", "tokens/s", "requests/s"),
		v.overRequests("latency_vs_", "Latency by ", "ms"))
}

func (v *view) overRequests(id, title string, units ...string) []chart {
	var out []chart
	for _, axis := range manyAtOnce() {
		out = append(out, v.over(axis[0], chart{ID: id + axis[1], Title: title + axis[2]},
			figuresOver(figure.Requests, units...))...)
	}
	return out
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
		l.XAxisList[0].MinInterval = 1 // half a client is none
		dots := plot{charts.NewLine()}
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
		l.MultiSeries = append(l.MultiSeries, dots.MultiSeries...)
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
func (v *view) launchesAt(s growth.Sweep, f *figure.Row) []opts.ScatterData {
	var out []opts.ScatterData
	for n, i := range s.Cells {
		c := &v.res.Cells[i]
		for _, x := range along(c, f).Values {
			out = append(out, spot(fmt.Sprintf("%s (attempt %d)", c.Repeated(), x.Attempt), digits(s.At[n]),
				fine(x.Value), 5))
		}
	}
	return out
}
