package reports

import (
	"fmt"
	"strconv"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"llmparity/compare"
	"llmparity/compare/timing"
)

// How to read the distributions.
const (
	latencyWords  = "Share of requests, or of gaps between tokens, that took at most this long. Dots: p50, p90, p95 and p99."
	latencyMethod = "All counted launches together. Percentiles by nearest rank: of few values, the highest ones coincide. " +
		"The intervals in the tables treat each launch as one observation."
)

func latencySection() section {
	return section{ID: "latency", Title: "Distribution of times", For: onPage, Words: []string{latencyWords},
		Method: []string{latencyMethod},
		Draw:   latencies, Across: "pair"}
}

// latencies draws one chart per kind of time, with one line per cell.
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
			Table:    latencyTable(v.res, name),
			Label:    "Cumulative distribution of " + title[name] + ", one curve per cell; the table below has the quantiles",
			Drawings: []drawing{{Options: v.ecdf(name, unit)}}})
	}
	return out
}

// taken finds a cell's distribution; nil without one.
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
	dots := plot{charts.NewLine()}
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
		looks := []style{stroke(v.colour(i), 2, kind, false), func(s *charts.SingleSeries) { s.Step = "end" }}
		if len(l.MultiSeries) == 0 {
			looks = append(looks, levels)
		}
		l.add("line", line(c.Label), data, looks...)
		var marks []opts.ScatterData
		for _, q := range d.Quantiles {
			marks = append(marks, spot("p"+num(100*q.Share), fine(q.Value), 100*q.Share, 7))
		}
		dots.add("scatter", line(c.Label), marks, inked(v.colour(i), 0))
	}
	l.MultiSeries = append(l.MultiSeries, dots.MultiSeries...)
	if least > 0 && most/least > 20 {
		l.XAxisList[0].Type, l.XAxisList[0].Name = "log", unit+", logarithmic"
	}
	return l.options()
}

// levels are lines at p50, p90 and p99.
func levels(s *charts.SingleSeries) {
	var at []any
	for _, share := range []float64{50, 90, 99} {
		at = append(at, map[string]any{"yAxis": share, "name": "p" + num(share)})
	}
	s.MarkLines = &opts.MarkLines{Data: at, MarkLineStyle: opts.MarkLineStyle{Symbol: []string{"none", "none"},
		Label: &opts.Label{Show: opts.Bool(true), Formatter: "{b}", Position: "insideStartTop", Color: "var(--muted)",
			FontSize: 11},
		LineStyle: &opts.LineStyle{Type: "dotted", Width: 1, Color: "var(--muted)"}}}
}

// dash distinguishes lines of one colour.
func dash(n int) string { return []string{"solid", "dashed", "dotted"}[n%3] }

func latencyTable(res *compare.Result, name string) *grid {
	head := []string{"cell", "quantile", "all values (ms)", "values", "launches", "median over launches (ms)",
		"95% interval"}
	return perCell(res, head, func(c *compare.Cell, add func(...string)) {
		d := taken(c, name)
		if d == nil {
			return
		}
		for _, q := range d.Quantiles {
			median, interval := "–", "too few values per launch"
			if q.ByLaunch != nil {
				median, interval = known(*q.ByLaunch), intervalWords(*q.ByLaunch)
			}
			add("p"+num(100*q.Share), num(q.Value), fmt.Sprintf("%d %s", d.N, d.Of), strconv.Itoa(d.Launches), median,
				interval)
		}
	})
}
