package reports

import (
	"fmt"
	"strconv"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/timing"
)

const latencyWords = "How many of all times are not above one: requests, or gaps between tokens, of all counted launches together. Dots: p50, p90, p95 " +
	"and p99, by nearest rank; of few values the highest ones are one. Intervals go by launches, in the tables: what was measured in one launch " +
	"shares its luck."

func latencySection() section {
	return section{ID: "latency", Title: "How times are spread", For: onPage, Words: []string{latencyWords},
		Draw: []func(*view) []chart{latencies}, Across: "pair"}
}

// latencies draws a chart a kind of time, a line a cell.
func latencies(v *view) []chart {
	var names []string
	title, unit := map[string]string{}, "ms"
	for i := range v.res.Cells {
		for _, d := range v.res.Cells[i].Distributions {
			if title[d.Name] == "" {
				names = append(names, d.Name)
				title[d.Name] = titleCase(d.Title)
			}
			unit = d.Unit
		}
	}
	var out []chart
	for _, name := range names {
		out = append(out, chart{ID: "latency-" + name, Title: title[name], Unit: unit,
			Table: latencyTable(v.res, name),
			Label: "Curves of the share of times that are not above one, for " + title[name] +
				", a curve a cell; quantiles are in the table below it",
			Drawings: []drawing{{Options: v.ecdf(name, unit)}}})
	}
	return out
}

// taken finds a cell's distribution; nil where it has none.
func taken(c *compare.Cell, name string) *timing.Distribution {
	for i := range c.Distributions {
		if c.Distributions[i].Name == name {
			return &c.Distributions[i]
		}
	}
	return nil
}

func (v *view) ecdf(name, unit string) map[string]any {
	l := lineChart(unit)
	l.YAxisList = []opts.YAxis{{Type: "value", SplitNumber: 5, Min: 0, Max: 100, Name: "%", NameLocation: "end"}}
	least, most := 0.0, 0.0
	dots := charts.NewScatter()
	drawn := map[string]int{}
	for i := range v.res.Cells {
		c := &v.res.Cells[i]
		d := taken(c, name)
		if d == nil {
			continue
		}
		data := [][2]any{{fine(d.Steps[0].Value), 0}}
		for _, s := range d.Steps {
			data = append(data, [2]any{fine(s.Value), digits(100 * s.Share)})
		}
		if first := d.Steps[0].Value; least == 0 || first < least {
			least = first
		}
		most = max(most, d.Steps[len(d.Steps)-1].Value)
		kind := dash(drawn[c.Spec.Engine])
		drawn[c.Spec.Engine]++
		l.AddSeries(line(c.Label), nil, bare(data), stroke(v.colour(i), 2, kind, false),
			func(s *charts.SingleSeries) { s.Step = "end" }, levels(len(l.MultiSeries) == 0))
		var marks []opts.ScatterData
		for _, q := range d.Quantiles {
			marks = append(marks, opts.ScatterData{Name: "p" + num(100*q.Share),
				Value: []any{fine(q.Value), 100 * q.Share}, Symbol: "circle", SymbolSize: 7})
		}
		dots.AddSeries(line(c.Label), marks, inked(v.colour(i), 0))
	}
	l.Overlap(dots)
	if least > 0 && most/least > 20 {
		l.XAxisList[0].Type, l.XAxisList[0].Name = "log", unit+", each step ten times the one before"
	}
	return options(l)
}

// levels are lines at the shares that are told of.
func levels(wanted bool) charts.SeriesOpts {
	return func(s *charts.SingleSeries) {
		if !wanted {
			return
		}
		var at []any
		for _, share := range []float64{50, 90, 99} {
			at = append(at, map[string]any{"yAxis": share, "name": "p" + num(share)})
		}
		s.MarkLines = &opts.MarkLines{Data: at, MarkLineStyle: opts.MarkLineStyle{Symbol: []string{"none", "none"},
			Label: &opts.Label{Show: opts.Bool(true), Formatter: "{b}", Position: "insideStartTop",
				Color: "var(--muted)", FontSize: 11},
			LineStyle: &opts.LineStyle{Type: "dotted", Width: 1, Color: "var(--muted)"}}}
	}
}

// dash tells lines of one colour apart.
func dash(n int) string { return []string{"solid", "dashed", "dotted"}[n%3] }

func latencyTable(res *compare.Result, name string) *grid {
	head := []string{"cell", "quantile", "over all (ms)", "of", "launches", "median of launches' own (ms)",
		"its 95 % interval"}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		d := taken(c, name)
		if d == nil {
			return
		}
		for _, q := range d.Quantiles {
			median, interval := "–", "launches have too few values for one"
			if q.ByLaunch != nil {
				median, interval = known(*q.ByLaunch), intervalWords(*q.ByLaunch)
			}
			add("p"+num(100*q.Share), num(q.Value), fmt.Sprintf("%d %s", d.N, d.Of), strconv.Itoa(d.Launches), median,
				interval)
		}
	})
}
