package section

import (
	"fmt"
	"slices"
	"strconv"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/compare/growth"
	"llmparity/internal/figure"
	"llmparity/internal/kit/words"
	"llmparity/reports/chart"
	"llmparity/reports/plain"
)

// How to read memory per token.
const (
	growthWords  = "The measured slope in bytes per token with its 95% interval, beside the calculated bytes of the KV cache."
	growthMethod = "\"Over cells\": one line is fitted through all launches of cells that differ only in context or prompt length. " +
		"\"Within launches\": each launch has a slope while it generates tokens, and the table shows their median. " +
		"Process memory (PSS, RSS) includes more than the KV cache, but no buffer that was reserved and never used. " +
		"If the KV cache is reserved during the load, other memory that grows has no calculated slope."
)

const withinLaunches = "within launches"

// growthSection shows memory per token.
func growthSection(res *compare.Result) Section {
	slopes := &plain.Grid{Name: "Slopes", Head: []string{"cells", "over", "memory", "bytes/token", "95% interval",
		"calculated", "result"}}
	var undecided [][]string // they would bury the others
	var all []ofCell
	add := func(who, over string, t *growth.Theory, rates []growth.Rate, reserved bool) {
		for _, r := range rates {
			if !r.Known() {
				continue
			}
			theory := "–"
			if t != nil && (r.Of == growth.OfReserved || !reserved) {
				theory = plain.Rate(t.Bytes)
			}
			all = append(all, ofCell{who, []evidence.Figure{r.Figure}})
			what := plain.Line(r.Title)
			if r.Of == growth.OfHeld {
				what += " (all memory)"
			}
			row := []string{plain.Line(who), over, what, plain.Rate(r.Center()), plain.RateInterval(r),
				theory, r.Verdict}
			if over == withinLaunches && r.Few {
				undecided = append(undecided, row)
			} else {
				slopes.Rows = append(slopes.Rows, row)
			}
		}
	}
	for _, s := range res.Sweeps { // first those whose launches are independent
		add(s.Label, s.Title+", over cells", s.Theory, s.Rates, s.Flat())
	}
	over := len(slopes.Rows) > 0
	var left []string
	for _, c := range res.Cells {
		g := c.Growth
		if g == nil {
			continue
		}
		// What memory grows by then is not the cache, and says nothing of the slope over cells.
		reserved := slices.ContainsFunc(g.Rates,
			func(r growth.Rate) bool { return r.Of == growth.OfReserved && r.Known() && r.Center() == 0 })
		if over && reserved {
			left = []string{"Left out: slopes within launches of engines that reserve the KV cache during the load; JSON has them."}
			continue
		}
		add(c.Label, withinLaunches, g.Theory, g.Rates, reserved)
	}
	switch n := len(undecided); {
	case len(slopes.Rows) == 0:
		slopes.Rows = undecided
	case n > 0:
		left = append(left, fmt.Sprintf("Left out: %s within launches, because there are too few launches.",
			words.Count(n, "slope")))
	}
	if len(slopes.Rows) == 0 {
		return Section{}
	}
	return Section{ID: "growth", Title: "Memory per token", Words: []string{growthWords}, Lines: left,
		Method: []string{growthMethod}, Across: "pair", Grid: slopes, Parts: []Section{explainedFor(res, all)},
		Draw: func(v *chart.View) []chart.Chart { return v.DrawnOver(figure.Contexts) }}
}

// How to read traffic.
const (
	trafficWords  = "Requests that run at the same time. Aggregate figures cover all requests of a launch."
	trafficMethod = "Percentiles are those of each launch's requests, by nearest rank. The p50 can therefore be slightly below the median in the summary. " +
		"Medians and intervals are over launches. Time to first token and end-to-end time start when a request was " +
		"due. They include queueing, which is also listed separately."
)

// trafficSection shows concurrent requests.
func trafficSection(res *compare.Result) Section {
	goal := slices.ContainsFunc(res.Cells,
		func(c *compare.Cell) bool { return c.Spec.Traffic != nil && c.Spec.Traffic.Goal != nil })
	words := trafficWords
	head := []string{"cell", "aggregate tokens/s", "95% interval", "requests/s"}
	if goal {
		head = append(head, "goodput (requests/s)", "within the goal (%)")
	} else {
		words += " Goodput needs a goal in the plan."
	}
	var caveats []string
	rates := plain.PerCell(res, append(head, "launches"), func(c *compare.Cell, add func(...string)) {
		if c.Load == nil {
			return
		}
		for _, caveat := range c.Load.Caveats {
			caveats = append(caveats, plain.Line(c.Label)+": "+plain.Line(caveat))
		}
		tps := c.Figure(figure.AggregateTPS)
		row := []string{plain.Known(tps), plain.IntervalWords(tps), plain.Known(c.Figure(figure.RequestRate))}
		if goal {
			row = append(row, plain.Known(c.Figure(figure.Goodput)), plain.Known(c.Figure(figure.GoodShare)))
		}
		add(append(row, strconv.Itoa(tps.N))...)
	})
	s := Section{ID: "traffic", Title: "Concurrent requests", For: OnPage, Parts: []Section{
		{Across: "pair", Draw: func(v *chart.View) []chart.Chart {
			return append(v.DrawnOver(figure.Requests), chart.MixedLengths(v)...)
		}}}}
	if rates != nil {
		s.Words, s.Method, s.Lines, s.Mark = []string{words}, []string{trafficMethod}, caveats, "- "
		s.Parts = append([]Section{{Grid: plain.Named(rates, "Aggregate figures of each launch")}}, s.Parts...)
		s.Parts = append(s.Parts, Section{Grid: plain.Named(requestTimes(res), "Request times by percentile")})
	}
	return s
}

// requestTimes are the percentiles of each cell's requests.
func requestTimes(res *compare.Result) *plain.Grid {
	head := []string{"cell", "requests", "time"}
	for _, share := range figure.Quantiles() {
		head = append(head, fmt.Sprintf("p%g (ms)", 100*share))
	}
	return plain.PerCell(res, append(head, "95% interval of the highest", "launches"),
		func(c *compare.Cell, add func(...string)) {
			if c.Load == nil {
				return
			}
			percentileRows(add, "all", c.Figure)
			for _, k := range c.Load.Kinds {
				percentileRows(add, plain.Line(k.Kind), k.Figure)
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
				highest, row = f, append(row, plain.Num(f.Center()))
			case f.Absent != "":
				row = append(row, "– ("+f.Absent+")")
			default:
				row = append(row, "–")
			}
		}
		if highest.Known() {
			add(append(row, plain.IntervalWords(highest), strconv.Itoa(highest.N))...)
		}
	}
}
