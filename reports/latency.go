package reports

import (
	"fmt"
	"strconv"

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

func (v *view) ecdf(name, unit string) options {
	l := lineChart(unit)
	l.y = options{"type": "value", "splitNumber": 5, "min": 0, "max": 100, "name": "%", "nameLocation": "end"}
	least, most := 0.0, 0.0
	dots := &plot{}
	drawn := map[string]int{}
	for i := range v.res.Cells {
		c := &v.res.Cells[i]
		d := taken(c, name)
		if d == nil {
			continue
		}
		first, last := d.Steps[0].Value, d.Steps[len(d.Steps)-1].Value
		data := [][2]any{{fine(first), 0}}
		for _, s := range d.Steps {
			data = append(data, [2]any{fine(s.Value), digits(100 * s.Share)})
		}
		if least == 0 || first < least {
			least = first
		}
		most = max(most, last)
		looks := []options{stroke(v.colour(i), 2, dash(drawn[c.Spec.Engine]), false), {"step": "end"}}
		drawn[c.Spec.Engine]++
		if len(l.series) == 0 {
			looks = append(looks, levels())
		}
		l.add("line", line(c.Label), data, looks...)
		var marks []options
		for _, q := range d.Quantiles {
			marks = append(marks, spot("p"+num(100*q.Share), fine(q.Value), 100*q.Share, 7))
		}
		dots.add("scatter", line(c.Label), marks, inked(v.colour(i), 0))
	}
	l.series = append(l.series, dots.series...)
	if least > 0 && most/least > 20 {
		l.x["type"], l.x["name"] = "log", unit+", logarithmic"
	}
	return l.options()
}

// levels are lines at p50, p90 and p99.
func levels() options {
	var at []options
	for _, share := range []float64{50, 90, 99} {
		at = append(at, options{"yAxis": share, "name": "p" + num(share)})
	}
	return options{"markLine": options{"data": at, "symbol": []string{"none", "none"},
		"label": options{"show": true, "formatter": "{b}", "position": "insideStartTop", "color": "var(--muted)",
			"fontSize": 11},
		"lineStyle": options{"type": "dotted", "width": 1, "color": "var(--muted)"}}}
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
