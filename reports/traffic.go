package reports

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmparity/compare"
	"llmparity/compare/evidence"
	"llmparity/internal/figure"
)

const trafficWords = "Percentiles are those of each launch's requests, by nearest rank, so that p50 may be a little under a median of the summary; medians and intervals go by launches. Times to the first token and " +
	"end to end count from when a request was due: what it waited is in them, and is told by itself as queueing. Aggregate figures are of all " +
	"requests of a launch together."

// trafficPart is what requests that come together came to; without a grid: they came one at a time.
type trafficPart struct {
	Words   string
	Caveats []string
	Rates   *grid
	Times   *grid
	Lacking []string // why percentiles are missing, each reason once
}

func newTrafficPart(res *compare.Result) trafficPart {
	goal := slices.ContainsFunc(res.Cells,
		func(c compare.Cell) bool { return c.Spec.Traffic != nil && c.Spec.Traffic.Goal != nil })
	p := trafficPart{Words: trafficWords,
		Rates: &grid{Head: []string{"cell", "tokens/s of all", "95 % interval", "requests/s"}},
		Times: &grid{Head: []string{"cell", "requests", "what", "p50 (ms)", "p90 (ms)", "p95 (ms)", "p99 (ms)",
			"95 % interval of the highest", "launches"}}}
	if goal {
		p.Rates.Head = append(p.Rates.Head, "goodput (requests/s)", "kept the goal (%)")
	} else {
		p.Words += " There is no goodput: the plan has no goal that requests are to keep."
	}
	p.Rates.Head = append(p.Rates.Head, "launches")
	var lacking lacks
	for i := range res.Cells {
		c := &res.Cells[i]
		if c.Load == nil {
			continue
		}
		label := line(c.Label)
		for _, caveat := range c.Load.Caveats {
			p.Caveats = append(p.Caveats, label+": "+line(caveat))
		}
		tps := c.Figure(figure.AggregateTPS)
		row := []string{label, known(tps), intervalWords(tps), known(c.Figure(figure.RequestRate))}
		if goal {
			row = append(row, known(c.Figure(figure.Goodput)), known(c.Figure(figure.GoodShare)))
		}
		p.Rates.Rows = append(p.Rates.Rows, append(row, strconv.Itoa(tps.N)))
		p.times(label, "all", c.Figure, &lacking)
		for _, k := range c.Load.Kinds {
			p.times(label, line(k.Kind), k.Figure, &lacking)
		}
	}
	p.Lacking = lacking.lines(res)
	if len(p.Rates.Rows) == 0 {
		return trafficPart{}
	}
	return p
}

func (p *trafficPart) times(label, kind string, find func(string) evidence.Figure, lacking *lacks) {
	for _, of := range []struct{ name, title string }{{figure.OfTTFT, "time to first token"},
		{figure.Queueing, "queueing"}, {figure.OfITL, "inter-token latency"},
		{figure.TPOT, "time per output token"}, {figure.E2E, "end to end"}} {
		row, highest, missing := []string{label, kind, of.title}, evidence.Figure{}, map[float64]string{}
		for _, share := range shares() {
			f := find(figure.Percentile(of.name, share))
			if f.Known() {
				highest, row = f, append(row, num(f.Center()))
			} else {
				missing[share], row = f.Absent, append(row, "–")
			}
		}
		if highest.Known() {
			for _, share := range shares() {
				if why := missing[share]; why != "" {
					lacking.add(fmt.Sprintf("p%g", math.Round(100*share)), why, label, kind)
				}
			}
			p.Times.Rows = append(p.Times.Rows,
				append(row, fmt.Sprint(intervalWords(highest)), strconv.Itoa(highest.N)))
		}
	}
}

// lacks are percentiles that rows lack, by the reason.
type lacks struct{ all []*lack }

type lack struct {
	what, why   string
	whole, some []string // cells that lack it of all requests, and cells of which kinds of requests do
}

func (l *lacks) add(what, why, label, kind string) {
	at := slices.IndexFunc(l.all, func(x *lack) bool { return x.what == what && x.why == why })
	if at < 0 {
		at = len(l.all)
		l.all = append(l.all, &lack{what: what, why: why})
	}
	to, name := &l.all[at].whole, label
	if kind != "all" {
		to, name = &l.all[at].some, label+", "+kind
	}
	if !slices.Contains(*to, name) {
		*to = append(*to, name)
	}
}

func (l *lacks) lines(res *compare.Result) []string {
	var out []string
	for _, x := range l.all {
		whose := x.some
		if len(x.whole) > 0 {
			whose = append([]string{line(everyCell(res, x.whole))}, x.some...)
		}
		out = append(out, fmt.Sprintf("No %s: %s (%s).", x.what, x.why, strings.Join(whose, "; ")))
	}
	return out
}
