package timing

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Load has the figures of all requests of a launch together, if there are several.
type Load struct {
	Figures []evidence.Figure `json:"figures"`
	Kinds   []KindLoad        `json:"kinds,omitempty"` // of a mix, each alone
	Caveats []string          `json:"caveats,omitempty"`
}

// KindLoad has the figures of the requests of one kind.
type KindLoad struct {
	Kind    string            `json:"kind"`
	Figures []evidence.Figure `json:"figures"`
}

// Figure finds a figure of the kind.
func (k KindLoad) Figure(name string) evidence.Figure {
	return evidence.Held(k.Figures, name)
}

// Together computes the figures of a traffic; nil if requests came one at a time.
func Together(spec record.Cell, counted []*record.Attempt) *Load {
	if spec.Traffic == nil || len(counted) == 0 {
		return nil
	}
	l := &Load{Figures: append(percentiles(counted, ""), rates(*spec.Traffic, counted)...),
		Caveats: trafficCaveats(spec, counted)}
	var kinds []string
	for _, r := range evidence.Requests(counted) {
		if r.Kind != "" {
			kinds = explain.AppendNew(kinds, r.Kind)
		}
	}
	if len(spec.Traffic.Mix) == 0 && len(kinds) < 2 {
		return l
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return cmp.Compare(kindPlace(spec, a), kindPlace(spec, b)) })
	for _, k := range kinds {
		l.Kinds = append(l.Kinds, KindLoad{k, percentiles(counted, k)})
	}
	return l
}

// kindPlace is the place of a kind in the mix; unknown kinds come last.
func kindPlace(spec record.Cell, kind string) int {
	at := slices.IndexFunc(spec.Traffic.Mix, func(k record.Kind) bool { return k.Name == kind })
	if at < 0 {
		return len(spec.Traffic.Mix)
	}
	return at
}

// percentiles are the percentiles of every launch, for requests of a kind, or all requests if kind is empty.
func percentiles(counted []*record.Attempt, kind string) []evidence.Figure {
	var out []evidence.Figure
	for _, t := range figure.TimesOfTraffic() {
		what := "requests"
		if t.Name == figure.OfITL {
			what = "gaps"
		}
		launches := byLaunch(counted, func(r *record.Request) []float64 {
			if kind != "" && r.Kind != kind {
				return nil
			}
			return t.Of(r)
		})
		fewest := math.MaxInt
		for _, values := range launches {
			fewest = min(fewest, len(values))
		}
		for _, share := range figure.Quantiles() {
			f := evidence.New(figure.Percentile(t.Name, share))
			switch needed := supports(share); {
			case fewest == 0:
				f.Absent = "a launch has no " + what
			case fewest < needed:
				f.Absent = fmt.Sprintf("needs %d %s a launch, and there are %d", needed, what, fewest)
			default:
				for i, a := range counted {
					f.Add(a.ID, stats.Ranked(launches[i], share))
				}
			}
			out = append(out, f)
		}
	}
	return evidence.Summarised(out)
}

// byLaunch has the values of each launch's requests in order, without NaN.
func byLaunch(counted []*record.Attempt, of func(*record.Request) []float64) [][]float64 {
	out := make([][]float64, len(counted))
	for i, a := range counted {
		for _, r := range a.Measured() {
			for _, v := range of(r) {
				if !math.IsNaN(v) && !math.IsInf(v, 0) {
					out[i] = append(out[i], v)
				}
			}
		}
		slices.Sort(out[i])
	}
	return out
}

// supports is how many values a percentile needs for one of them to lie at or above it. With fewer, every such
// percentile is the highest value.
func supports(share float64) int {
	if share <= 0.5 {
		return 1
	}
	return int(math.Ceil(1/(1-share) - 1e-9))
}

// rates are the rates of all requests of a launch.
func rates(t record.Traffic, counted []*record.Attempt) []evidence.Figure {
	tps, rate := evidence.New(figure.AggregateTPS), evidence.New(figure.RequestRate)
	good, share := evidence.New(figure.Goodput), evidence.New(figure.GoodShare)
	good.How, share.How = fmt.Sprintf(good.How, goalWords(t.Goal)), fmt.Sprintf(share.How, goalWords(t.Goal))
	share.Method = evidence.ByClock
	for _, a := range counted {
		requests := a.Measured()
		if len(requests) == 0 {
			continue
		}
		first, last, returned, tokens, kept := int64(math.MaxInt64), int64(math.MinInt64), int64(math.MinInt64), 0, 0
		for _, r := range requests {
			first, returned, tokens = min(first, figure.Due(r)), max(returned, r.ReturnedNS), tokens+r.Tokened()
			if n := len(r.Tokens); n > 0 {
				last = max(last, r.Tokens[n-1].NS)
			}
			if keeps(r, t.Goal) {
				kept++
			}
		}
		if last > first {
			tps.Add(a.ID, float64(tokens)/(float64(last-first)/1e9))
		}
		if returned <= first {
			continue
		}
		seconds := float64(returned-first) / 1e9
		rate.Add(a.ID, float64(len(requests))/seconds)
		if t.Goal != nil {
			good.Add(a.ID, float64(kept)/seconds)
			share.Add(a.ID, 100*float64(kept)/float64(len(requests)+a.Unanswered()))
		}
	}
	return evidence.Summarised([]evidence.Figure{tps, rate, good, share})
}

// keeps reports whether a request met the goal. It does not if it lacks what the goal is about, such as a first token.
// A request with one token has no time per token.
func keeps(r *record.Request, g *record.Goal) bool {
	if g == nil {
		return false
	}
	within := func(v, most float64) bool { return most == 0 || v <= most }
	return within(figure.TimeToFirst(r), g.TTFTms) && within(figure.EndToEnd(r), g.E2Ems) &&
		(within(figure.PerToken(r), g.TPOTms) || r.Tokened() == 1)
}

func goalWords(g *record.Goal) string {
	if g == nil {
		return "there is none"
	}
	words := ""
	for _, part := range []struct {
		what string
		most float64
	}{{"first token", g.TTFTms}, {"each further token", g.TPOTms}, {"all of it", g.E2Ems}} {
		if part.most > 0 {
			words += fmt.Sprintf(", %s within %s ms", part.what, explain.Short(part.most))
		}
	}
	if words == "" {
		return "none"
	}
	return words[2:]
}

// trafficCaveats say what the times of a traffic include.
func trafficCaveats(spec record.Cell, counted []*record.Attempt) []string {
	most, asked, longest := 0, spec.Traffic.Concurrency, 0.0
	waited := evidence.Figure{Unit: "ms"}
	queued := func(r *record.Request) []float64 { return []float64{figure.Queued(r)} }
	for i, values := range byLaunch(counted, queued) {
		most = max(most, evidence.InFlight(counted[i]))
		if len(values) > 0 {
			longest = max(longest, values[len(values)-1])
			waited.Add(counted[i].ID, stats.Ranked(values, 0.5)) // as Percentile(Queueing, 0.5) is
		}
	}
	waited.Summarise()
	switch {
	case asked == 1 || most != 1:
		return nil
	case longest < 1:
		return nil // clients that begin one after another can come when nobody else asks
	case spec.Traffic.Loop == record.OpenLoop && waited.Center() <= 0:
		return nil // none came while another was under way
	}
	return []string{fmt.Sprintf("served one request at a time: the others waited (half of them %s ms or more), which counts in time to first "+
		"token and end to end", explain.Short(waited.Center()))}
}
