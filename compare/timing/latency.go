package timing

import (
	"fmt"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Distribution is how long something took, over all requests or tokens of a cell's counted launches. Pooled values
// describe it. Intervals treat each launch as one observation, because values of one launch are not independent.
type Distribution struct {
	Name      string     `json:"name"`
	Title     string     `json:"title"`
	Unit      string     `json:"unit"`
	Of        string     `json:"of"` // what was pooled: requests, gaps between tokens
	N         int        `json:"n"`
	Launches  int        `json:"launches"`
	Quantiles []Quantile `json:"quantiles"`
	// Steps are the empirical distribution: at each value, the share of all values up to it. Of many values some are
	// left out.
	Steps  []stats.Step `json:"-"`
	Absent string       `json:"absent,omitempty"`
	How    string       `json:"how"`
}

// Quantile is a quantile by nearest rank, so it is a value that occurred. With few values, the highest quantiles are
// equal.
type Quantile struct {
	Share float64 `json:"share"`
	Value float64 `json:"value"` // over all that was pooled
	// ByLaunch is the median over launches of each launch's own quantile; nil if launches have too few values for one.
	ByLaunch *evidence.Figure `json:"by_launch,omitempty"`
}

// Distributions are those of the times that a user waits for.
func Distributions(spec record.Cell, counted []*record.Attempt) []Distribution {
	gapTitle, gapOf := "inter-token latency", "gaps between tokens"
	if evidence.Uncounted(spec, counted) {
		gapTitle, gapOf = "time between pieces of text", "gaps between pieces of text"
	}
	of := map[string]Distribution{
		figure.OfTTFT: {Name: "ttft", Title: "time to first token", Of: "requests"},
		figure.OfITL:  {Name: "inter_token_latency", Title: gapTitle, Of: gapOf},
		figure.E2E:    {Name: "latency", Title: "request latency, end to end", Of: "requests"},
	}
	var out []Distribution
	for _, t := range figure.TimesOfTraffic() {
		if d, ok := of[t.Name]; ok {
			out = append(out, distribution(counted, t.Of, d))
		}
	}
	return slices.DeleteFunc(out, func(d Distribution) bool { return d.N == 0 })
}

func distribution(counted []*record.Attempt, of func(*record.Request) []float64, d Distribution) Distribution {
	d.Unit, d.How = "ms", "all "+d.Of+" of counted launches together; percentiles by nearest rank. The interval of a percentile is that of "+
		"its median over launches, if each has enough values (1 for p50, 10 for p90, 20 for p95, 100 for p99)"
	var all []float64
	launches := byLaunch(counted, of)
	for i, values := range launches {
		// A clock that ran backwards gives a negative time.
		launches[i] = slices.DeleteFunc(values, func(v float64) bool { return v < 0 })
		if all = append(all, launches[i]...); len(launches[i]) > 0 {
			d.Launches++
		}
	}
	slices.Sort(all)
	d.N, d.Quantiles = len(all), []Quantile{}
	if len(all) == 0 {
		return d
	}
	for _, share := range figure.Quantiles() {
		q := Quantile{Share: share, Value: stats.Round(stats.Ranked(all, share), 6)}
		f := evidence.Figure{Name: d.Name, Title: fmt.Sprintf("%s, p%g", d.Title, 100*share), Unit: d.Unit, How: d.How}
		for i, values := range launches {
			if len(values) > 0 && len(values) >= supports(share) {
				f.Add(counted[i].ID, stats.Ranked(values, share))
			}
		}
		if len(f.Values) == d.Launches {
			f.Summarise()
			q.ByLaunch = &f
		}
		d.Quantiles = append(d.Quantiles, q)
	}
	d.Steps = stats.Steps(all)
	return d
}
