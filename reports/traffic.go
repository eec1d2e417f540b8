package reports

import (
	"fmt"
	"slices"
	"strconv"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
)

// How to read traffic.
const (
	trafficWords  = "Requests that run at the same time. Aggregate figures cover all requests of a launch."
	trafficMethod = "Percentiles are those of each launch's requests, by nearest rank, so p50 can be slightly below the median in the summary. " +
		"Medians and intervals are over launches. Time to first token and end-to-end time count from when a request was due, " +
		"so they include queueing, which is also listed by itself."
)

// trafficSection shows concurrent requests.
func trafficSection(res *compare.Result) section {
	goal := slices.ContainsFunc(res.Cells,
		func(c compare.Cell) bool { return c.Spec.Traffic != nil && c.Spec.Traffic.Goal != nil })
	words := trafficWords
	head := []string{"cell", "aggregate tokens/s", "95% interval", "requests/s"}
	if goal {
		head = append(head, "goodput (requests/s)", "within the goal (%)")
	} else {
		words += " Goodput needs a goal in the plan."
	}
	var caveats []string
	rates := perCell(res, append(head, "launches"), func(c *compare.Cell, add func(...string)) {
		if c.Load == nil {
			return
		}
		for _, caveat := range c.Load.Caveats {
			caveats = append(caveats, line(c.Label)+": "+line(caveat))
		}
		tps := c.Figure(figure.AggregateTPS)
		row := []string{known(tps), intervalWords(tps), known(c.Figure(figure.RequestRate))}
		if goal {
			row = append(row, known(c.Figure(figure.Goodput)), known(c.Figure(figure.GoodShare)))
		}
		add(append(row, strconv.Itoa(tps.N))...)
	})
	s := section{ID: "traffic", Title: "Concurrent requests", For: onPage, Parts: []section{
		{Across: "pair", Draw: func(v *view) []chart {
			return append(v.drawnOver(figure.Requests), mixedLengths(v)...)
		}}}}
	if rates != nil {
		s.Words, s.Method, s.Lines, s.Mark = []string{words}, []string{trafficMethod}, caveats, "- "
		s.Parts = append([]section{{Grid: named(rates, "Aggregate figures of each launch")}}, s.Parts...)
		s.Parts = append(s.Parts, section{Grid: named(requestTimes(res), "Request times by percentile")})
	}
	return s
}

// requestTimes are the percentiles of each cell's requests.
func requestTimes(res *compare.Result) *grid {
	head := []string{"cell", "requests", "time"}
	for _, share := range figure.Quantiles() {
		head = append(head, fmt.Sprintf("p%g (ms)", 100*share))
	}
	return perCell(res, append(head, "95% interval of the highest", "launches"),
		func(c *compare.Cell, add func(...string)) {
			if c.Load == nil {
				return
			}
			percentileRows(add, "all", c.Figure)
			for _, k := range c.Load.Kinds {
				percentileRows(add, line(k.Kind), k.Figure)
			}
		})
}

// percentileRows adds one row per kind of time with a known percentile; where one is missing it says why.
func percentileRows(add func(...string), kind string, find func(string) evidence.Figure) {
	for _, of := range figure.TimesOfTraffic() {
		row, highest := []string{kind, of.Title}, evidence.Figure{}
		for _, share := range figure.Quantiles() {
			f := find(figure.Percentile(of.Name, share))
			switch {
			case f.Known():
				highest, row = f, append(row, num(f.Center()))
			case f.Absent != "":
				row = append(row, "– ("+f.Absent+")")
			default:
				row = append(row, "–")
			}
		}
		if highest.Known() {
			add(append(row, intervalWords(highest), strconv.Itoa(highest.N))...)
		}
	}
}
