package timing

import (
	"fmt"
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Distribution is how long something took, over all requests or tokens of a cell's counted launches. Pooled numbers
// describe; intervals go by launches, because what was measured in one launch shares its luck.
type Distribution struct {
	Name      string     `json:"name"`
	Title     string     `json:"title"`
	Unit      string     `json:"unit"`
	Of        string     `json:"of"` // what was pooled: requests, gaps between tokens
	N         int        `json:"n"`
	Launches  int        `json:"launches"`
	Quantiles []Quantile `json:"quantiles"`
	// Steps are the empirical distribution: the share of all values that are not above each. Of many values some are
	// left out.
	Steps  []stats.Step `json:"-"`
	Absent string       `json:"absent,omitempty"`
	How    string       `json:"how"`
}

// Quantile is the value that a share of all is not above: by nearest rank, so that it is one that occurred. Of few
// values the highest ones are all the same.
type Quantile struct {
	Share float64 `json:"share"`
	Value float64 `json:"value"` // over all that was pooled
	// ByLaunch is the median over launches of each launch's own quantile, nil where launches have too few values for
	// one.
	ByLaunch *evidence.Figure `json:"by_launch,omitempty"`
}

// Distributions are those of the times that a reader waits for.
func Distributions(spec record.Cell, counted []*record.Attempt) []Distribution {
	gapTitle, gapOf := "inter-token latency", "gaps between tokens"
	if evidence.Uncounted(spec, counted) {
		gapTitle, gapOf = "time between pieces of text", "gaps between pieces of text"
	}
	one := func(of func(*record.Request) float64) func(*record.Request) []float64 {
		return func(r *record.Request) []float64 { return []float64{of(r)} }
	}
	out := []Distribution{
		distribution(counted, one(figure.TimeToFirst),
			Distribution{Name: "ttft", Title: "time to first token", Of: "requests"}),
		distribution(counted, figure.Gaps, Distribution{Name: "inter_token_latency", Title: gapTitle, Of: gapOf}),
		distribution(counted, one(figure.EndToEnd),
			Distribution{Name: "latency", Title: "request latency, end to end", Of: "requests"}),
	}
	return slices.DeleteFunc(out, func(d Distribution) bool { return d.N == 0 })
}

func distribution(counted []*record.Attempt, of func(*record.Request) []float64, d Distribution) Distribution {
	d.Unit, d.How = "ms", "all "+d.Of+" of counted launches together; percentiles by nearest rank. The interval of a percentile is that of "+
		"its median over launches, if each has enough values (1 for p50, 10 for p90, 20 for p95, 100 for p99)"
	type own struct {
		attempt int
		sorted  []float64
	}
	var all []float64
	var each []own
	for _, a := range counted {
		var values []float64
		for _, r := range a.Measured() {
			for _, v := range of(r) {
				if v >= 0 && !math.IsInf(v, 0) { // no number, or a clock that ran backwards
					values = append(values, v)
				}
			}
		}
		if len(values) > 0 {
			slices.Sort(values)
			each = append(each, own{a.ID, values})
			all = append(all, values...)
		}
	}
	slices.Sort(all)
	d.N, d.Launches, d.Quantiles = len(all), len(each), []Quantile{}
	if len(all) == 0 {
		return d
	}
	for _, share := range figure.Quantiles() {
		q := Quantile{Share: share, Value: stats.Round(stats.Ranked(all, share), 6)}
		f := evidence.Figure{Name: d.Name, Title: fmt.Sprintf("%s, p%g", d.Title, 100*share), Unit: d.Unit, How: d.How}
		for _, o := range each {
			if float64(len(o.sorted))*(1-share) >= 1-1e-9 || share == 0.5 {
				f.Add(o.attempt, stats.Ranked(o.sorted, share))
			}
		}
		if len(f.Values) == len(each) {
			f.Summarise()
			q.ByLaunch = &f
		}
		d.Quantiles = append(d.Quantiles, q)
	}
	d.Steps = stats.Steps(all)
	return d
}
