package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Load is what a launch's requests came to together, where there are several.
type Load struct {
	Figures []evidence.Figure `json:"figures"`
	Kinds   []KindLoad        `json:"kinds,omitempty"` // of a mix, each alone
	Caveats []string          `json:"caveats,omitempty"`
}

// KindLoad is what requests of one kind came to, among the others.
type KindLoad struct {
	Kind    string            `json:"kind"`
	Figures []evidence.Figure `json:"figures"`
}

// Figure finds one of a kind's.
func (k KindLoad) Figure(name string) evidence.Figure {
	for _, f := range k.Figures {
		if f.Name == name {
			return f
		}
	}
	return evidence.Figure{Name: name, Absent: "not measured"}
}

// load gathers the figures of a traffic; nil where requests came one at a time.
func load(spec record.Cell, counted []*record.Attempt) *Load {
	if spec.Traffic == nil || len(counted) == 0 {
		return nil
	}
	all := func(*record.Request) bool { return true }
	l := &Load{Figures: append(percentiles(counted, all), rates(*spec.Traffic, counted)...),
		Caveats: trafficCaveats(spec, counted)}
	var kinds []string
	for _, a := range counted {
		for _, r := range a.Measured() {
			if r.Kind != "" {
				kinds = explain.AppendNew(kinds, r.Kind)
			}
		}
	}
	if len(spec.Traffic.Mix) == 0 && len(kinds) < 2 {
		return l
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return cmp.Compare(kindPlace(spec, a), kindPlace(spec, b)) })
	for _, k := range kinds {
		l.Kinds = append(l.Kinds, KindLoad{k,
			percentiles(counted, func(r *record.Request) bool { return r.Kind == k })})
	}
	return l
}

// kindPlace is where a kind stands in the mix; those that it lacks come last.
func kindPlace(spec record.Cell, kind string) int {
	at := slices.IndexFunc(spec.Traffic.Mix, func(k record.Kind) bool { return k.Name == kind })
	if at < 0 {
		return len(spec.Traffic.Mix)
	}
	return at
}

// percentiles are those of every launch, of requests that are asked for.
func percentiles(counted []*record.Attempt, of func(*record.Request) bool) []evidence.Figure {
	var out []evidence.Figure
	for _, t := range figure.TimesOfTraffic() {
		what := "requests"
		if t.Name == figure.OfITL {
			what = "gaps"
		}
		launches := make([][]float64, len(counted))
		fewest := math.MaxInt
		for i, a := range counted {
			for _, r := range a.Measured() {
				if !of(r) {
					continue
				}
				for _, v := range t.Of(r) {
					if !math.IsNaN(v) && !math.IsInf(v, 0) {
						launches[i] = append(launches[i], v)
					}
				}
			}
			slices.Sort(launches[i])
			fewest = min(fewest, len(launches[i]))
		}
		for _, share := range figure.Quantiles() {
			f := evidence.New(figure.Percentile(t.Name, share))
			switch needed := supports(share); {
			case fewest == 0:
				f.Absent = "a launch has none"
			case fewest < needed:
				f.Absent = fmt.Sprintf("it takes %d %s a launch, and there are %d", needed, what, fewest)
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

// supports is how many values a percentile takes for one of them to be at or above it: of fewer it is the highest,
// whichever is asked for.
func supports(share float64) int {
	if share <= 0.5 {
		return 1
	}
	return int(math.Ceil(1/(1-share) - 1e-9))
}

// rates are what all requests of a launch come to.
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

// keeps tells whether a request kept the goal. What it lacks, such as a first token, it did not keep; of one token
// there is no time per token.
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
		return "anything will do"
	}
	return words[2:]
}

// trafficCaveats say what is in the times of a traffic.
func trafficCaveats(spec record.Cell, counted []*record.Attempt) []string {
	most, asked, longest := 0, spec.Traffic.Concurrency, 0.0
	waited := evidence.Figure{Unit: "ms"}
	for _, a := range counted {
		most = max(most, inFlight(a))
		var values []float64
		for _, r := range a.Measured() {
			values = append(values, figure.Queued(r))
		}
		if len(values) > 0 {
			slices.Sort(values)
			longest = max(longest, values[len(values)-1])
			waited.Add(a.ID, stats.Ranked(values, 0.5)) // as Percentile(Queueing, 0.5) is
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
	return []string{fmt.Sprintf("it had one request at a time: the others waited with us, half of them %s ms or more, which is in the times to the "+
		"first token and end to end", explain.Short(waited.Center()))}
}

// inFlight is the most requests that an engine had at once.
func inFlight(a *record.Attempt) int {
	type edge struct {
		at int64
		by int
	}
	var edges []edge
	for _, r := range a.Measured() {
		edges = append(edges, edge{r.SentNS, 1}, edge{r.ReturnedNS, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now, most := 0, 0
	for _, e := range edges {
		now += e.by
		most = max(most, now)
	}
	return most
}

// sameTraffic tells whether requests come alike.
func sameTraffic(a, b *record.Traffic) bool { return reflect.DeepEqual(a, b) }

// clients is how many ask at once, each again when it was answered; 1 of one request, 0 where requests come otherwise.
func clients(c *Cell) int {
	switch t := c.Spec.Traffic; {
	case t == nil:
		return 1
	case t.Loop == record.ClosedLoop:
		return t.Concurrency
	}
	return 0
}

// batch is how many requests are sent in the same moment; 1 of one request, 0 where they come otherwise.
func batch(c *Cell) int {
	switch t := c.Spec.Traffic; {
	case t == nil:
		return 1
	case t.Loop == record.Batch:
		return t.Concurrency
	}
	return 0
}

// butFor is a traffic without how many come at once, and what hangs on it; of one request that of as many clients as
// there are.
func butFor(t *record.Traffic, loop string) string {
	if t == nil {
		t = &record.Traffic{Loop: loop}
	}
	other := *t
	other.Concurrency, other.Requests, other.Seed = 0, 0, 0
	return trafficKey(&other)
}

// trafficKey is all of a traffic in one text.
func trafficKey(t *record.Traffic) string {
	text, err := json.Marshal(t)
	if err != nil {
		return err.Error() // of a number that is none: alike to those alone that are as absurd
	}
	return string(text)
}

// Traffic is how requests come, in a few words.
func (c *Cell) Traffic() string { return trafficWords(c.Spec.Traffic) }

// trafficWords are a traffic in a few words, for a name.
func trafficWords(t *record.Traffic) string {
	if t == nil {
		return "one request"
	}
	words := ""
	switch t.Loop {
	case record.Batch:
		words = fmt.Sprintf("batch %d", t.Concurrency)
	case record.OpenLoop:
		if words = "open loop"; t.Rate > 0 {
			words = fmt.Sprintf("%g requests/s", t.Rate)
		}
		if t.Concurrency > 0 {
			words += fmt.Sprintf(", %d at once", t.Concurrency)
		}
	default:
		words = fmt.Sprintf("concurrency %d", t.Concurrency)
	}
	if t.Turns > 1 {
		words += fmt.Sprintf(", %d turns", t.Turns)
	}
	var kinds []string
	for _, k := range t.Mix {
		kinds = append(kinds, k.Name)
	}
	if len(kinds) > 0 {
		words += ", " + strings.Join(kinds, " and ")
	}
	return words
}

// tail is the highest percentile of times to the first token that both cells have; empty where there is none above the
// median.
func tail(a, b *Cell) string {
	for _, share := range slices.Backward(figure.Quantiles()[1:]) {
		if name := figure.Percentile(figure.OfTTFT, share); a.Figure(name).Known() && b.Figure(name).Known() {
			return name
		}
	}
	return ""
}
