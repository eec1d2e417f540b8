package reports

import (
	"fmt"
	"strconv"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
)

// ofLength is a figure that is drawn over the length of the prompt, or along another axis.
type ofLength struct {
	name string
	get  func(*compare.Cell) evidence.Figure
}

func overLengths(names ...string) []ofLength {
	var out []ofLength
	for _, name := range names {
		out = append(out, ofLength{name, func(c *compare.Cell) evidence.Figure { return c.Figure(name) }})
	}
	return out
}

// latencyOverLength is latency over the length of the prompt, where a run has prompts of several lengths.
func latencyOverLength(v *view) []chart {
	return v.over(compare.AxisPrompt, chart{ID: "fig3_latency_vs_seqlen", Section: "lengths",
		Title: "Latency over prompt length"},
		overLengths(figure.Latency, figure.TTFT, figure.ITL50, figure.PrefillTPS))
}

// memoryOverLength is memory over the length of the prompt.
func memoryOverLength(v *view) []chart {
	return v.over(compare.AxisPrompt, chart{ID: "fig4_mem_vs_seqlen", Section: "lengths",
		Title: "Memory over prompt length"},
		append(overLengths(figure.PeakPSS, figure.Increase, figure.PeakRSS), insideOf(figure.KVUsed),
			insideOf(figure.KVReserved)))
}

// insideOf is what an engine holds at the end of the measurement.
func insideOf(name string) ofLength {
	return ofLength{name, func(c *compare.Cell) evidence.Figure {
		if c.Memory == nil {
			return evidence.Figure{}
		}
		return evidence.Held(c.Memory.Measure, name)
	}}
}

// over draws a line an engine along an axis of sweeps, a drawing a figure: medians with their intervals.
func (v *view) over(axis string, out chart, figures []ofLength) []chart {
	along := ""
	for _, s := range v.res.Sweeps {
		if s.Axis == axis {
			along = s.Title
		}
	}
	out.Choice, out.Label = "What", "Lines of "+out.Title+" for each engine; the same figures are in the table below it"
	out.Table = &grid{Head: []string{"cell", along, "what", "median", "95 % interval", "launches"}}
	for _, f := range figures {
		l := lineChart(along)
		l.XAxisList[0].MinInterval = 1 // half a client is none
		dots := charts.NewScatter()
		name, drawn := "", map[string]int{}
		for _, s := range v.res.Sweeps {
			if s.Axis != axis {
				continue
			}
			var data [][2]any
			lines := []any{}
			for n, i := range s.Cells {
				x := f.get(&v.res.Cells[i])
				if !x.Known() {
					continue
				}
				name = titleCase(x.Title) + " (" + x.Unit + ")"
				data = append(data, datum(s.At[n], x.Center()))
				if iv := x.Interval; iv != nil {
					lines = append(lines,
						[]any{map[string]any{"coord": []any{s.At[n], fine(iv.Lo)}},
							map[string]any{"coord": []any{s.At[n], fine(iv.Hi)}}})
				}
				out.Table.Rows = append(
					out.Table.Rows, []string{line(v.res.Cells[i].Label), num(s.At[n]), name, num(x.Center()),
						intervalWords(x), strconv.Itoa(x.N)})
			}
			if len(data) > 0 {
				l.AddSeries(line(s.Label), nil, bare(data),
					stroke(v.colour(s.Cells[0]), 2.4, dash(drawn[s.Engine]), true), whiskers(lines))
				dots.AddSeries(line(s.Label)+", launches", v.launchesAt(s, f),
					charts.WithItemStyleOpts(opts.ItemStyle{Color: v.colour(s.Cells[0]), Opacity: opts.Float(0.6)}))
				drawn[s.Engine]++
			}
		}
		if l.Overlap(dots); name != "" {
			out.Drawings = append(out.Drawings,
				drawing{Name: name, Caption: "Lines: medians. Dots: launches. Strokes: 95 % intervals, where there are launches enough.", Options: options(l)})
		}
	}
	if len(out.Drawings) == 0 {
		return nil
	}
	return []chart{out}
}

// launchesAt is a dot a launch.
func (v *view) launchesAt(s compare.Sweep, f ofLength) []opts.ScatterData {
	var out []opts.ScatterData
	for n, i := range s.Cells {
		c := &v.res.Cells[i]
		for _, x := range f.get(c).Values {
			out = append(out, spot(compare.GrowthAt{Tokens: s.At[n], MiB: x.Value},
				fmt.Sprintf("%s (attempt %d)", c.Repeated(), x.Attempt)))
		}
	}
	return out
}

// whiskers are lines from the lower to the upper ends of intervals.
func whiskers(lines []any) charts.SeriesOpts {
	return func(s *charts.SingleSeries) {
		if len(lines) > 0 {
			s.MarkLines = &opts.MarkLines{Data: lines,
				MarkLineStyle: opts.MarkLineStyle{Symbol: []string{"none", "none"},
					Label:     &opts.Label{Show: opts.Bool(false)},
					LineStyle: &opts.LineStyle{Type: "solid", Width: 2, Color: "var(--ink)"}}}
		}
	}
}
