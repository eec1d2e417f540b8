// Package growth computes the growth of memory per token: within launches, from samples and the times of tokens, and
// over cells that differ along one axis alone, as the slope of a line through their launches.
//
// It cannot distinguish growth from noise with few launches, nor the growth caused by one of several concurrent
// requests. Between two samples it interpolates.
package growth

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Growth is the growth of memory per token by every source that is read often enough, and as calculated.
type Growth struct {
	Theory  *Theory  `json:"theory,omitempty"` // nil: neither the model's shape nor its KV cache dtype is known
	Rates   []Rate   `json:"rates"`
	Verdict []string `json:"verdict"`
}

// Theory is the calculated size of a token in the KV cache.
type Theory struct {
	Bytes  float64       `json:"bytes_per_token"`
	How    string        `json:"how"`
	Origin record.Origin `json:"origin"` // calculated, or predicted before the first launch
}

// What a rate is of. The filled part of a KV cache has none, because it is calculated: it would confirm itself.
const (
	OfReserved = "kv_reserved"
	OfHeld     = "memory" // of any kind
)

// Rate is a slope in bytes per token. Within launches it has one value a launch, like other figures; over cells it is
// the slope of one line through all launches.
type Rate struct {
	evidence.Figure
	Of       string   `json:"of"`
	OfTheory *float64 `json:"of_theory,omitempty"` // the median divided by the calculated value
	// Rounded is the range of slopes that agree with the rounded sizes in an engine's log; nil: no log, or exact
	// enough.
	Rounded *Range `json:"rounded,omitempty"`
	Verdict string `json:"verdict"`
	Fit     *Fit   `json:"fit,omitempty"`
	DType   string `json:"-"` // of the KV cache that is reserved, if the engine reports it
	Few     bool   `json:"-"` // there are too few launches to see growth
	// Points are the launches behind a line over cells, in MiB.
	Points []GrowthPoint `json:"points,omitempty"`
	// Lines are readings within launches, thinned for charts, in MiB above the launch's line at its first token. The
	// record has all of them.
	Lines []GrowthLine `json:"-"`
}

// Range is a range of slopes.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// logMiB is the unit to which logs round sizes of buffers.
const logMiB = 0.01

// worthSaying is the share of a slope above which the log's rounding is reported.
const worthSaying = 0.005

// round finds the slopes that agree with rounded sizes: rounding moves each size by up to half of logMiB.
func (r *Rate) round() {
	if r.Of != OfReserved || r.Method != evidence.EngineLog || !r.Known() {
		return
	}
	low, high := math.Inf(-1), math.Inf(1)
	for i, a := range r.Points {
		if steps := a.MiB / logMiB; math.Abs(steps-math.Round(steps)) > 1e-3 {
			return // the log has more digits
		}
		for _, b := range r.Points[i+1:] {
			if a.Tokens == b.Tokens {
				continue
			}
			slope, off := (b.MiB-a.MiB)/(b.Tokens-a.Tokens), (logMiB+1.0/record.MiB)/math.Abs(b.Tokens-a.Tokens)
			low, high = max(low, (slope-off)*record.MiB), min(high, (slope+off)*record.MiB)
		}
	}
	if low > high || math.IsInf(low, 0) || (high-low)/2 <= worthSaying*math.Abs(r.Center()) {
		return
	}
	r.Rounded = &Range{stats.Round(low, 6), stats.Round(high, 6)}
	r.How += fmt.Sprintf(". The log rounds sizes to %g MiB, so the slope may be %s", logMiB, r.Rounded)
}

// String is the range in bytes per token.
func (r *Range) String() string { return rateWords(r.Low) + " to " + rateWords(r.High) }

// Fit is the line to draw, from one end to the other, in tokens and MiB.
type Fit struct {
	From GrowthAt `json:"from"`
	To   GrowthAt `json:"to"`
	// Theory is the end of the calculated line, which has the same start.
	Theory *GrowthAt `json:"theory_to,omitempty"`
}

// GrowthAt is a point of a line.
type GrowthAt struct {
	Tokens float64 `json:"tokens"`
	MiB    float64 `json:"mib"`
}

// GrowthPoint is a launch of a cell.
type GrowthPoint struct {
	Cell    int `json:"cell"`
	Attempt int `json:"attempt"`
	GrowthAt
}

// GrowthLine is a launch's readings.
type GrowthLine struct {
	Attempt int
	Points  []GrowthAt
}

const growthHow = "in each launch, the median slope between all pairs of readings while it generates (Theil-Sen, at most about 200 " +
	"readings). Prompt tokens count as tokens. If a launch has several requests, the median of their slopes. " +
	"The interval is that of the median over launches, because readings within a launch depend on each other"

const edgesHow = "how much memory grows with each token in the cache, from readings at the end of the warm-up and of the measured requests " +
	"(slope by Theil-Sen, median over launches). If two readings are not enough, the reading at the end of the load is used too"

// grow computes the growth of memory within launches, or why it is unknown; nil: the theory is unknown, too.
func grow(c *memory.Footprint, run *record.Run, followed map[*record.Attempt][]track) *Growth {
	counted := c.Counted
	g := &Growth{Theory: theory(c, run), Rates: []Rate{}, Verdict: []string{}}
	g.Rates = append(g.Rates, cacheRate(memory.PartOf(figure.KVReserved).Of(counted), counted, followed))
	g.Rates[0].inDType(c)
	of := map[string]int{figure.KVReserved: 0} // indexes of rates by name
	for a, clock := range timed(counted) {
		for _, t := range followed[a] {
			if _, ok := of[t.name]; !ok {
				of[t.name] = len(g.Rates)
				g.Rates = append(g.Rates, Rate{Figure: evidence.Figure{Name: t.name, How: growthHow}, Of: OfHeld})
			}
			if t.name != figure.KVReserved {
				g.Rates[of[t.name]].follow(a, t, clock)
			}
		}
	}
	g.Rates = slices.DeleteFunc(g.Rates, func(r Rate) bool { return r.Title == "" })
	known := false
	for i := range g.Rates {
		r := &g.Rates[i]
		r.Unit = "bytes/token"
		r.Summarise()
		r.compareWith(g.Theory)
		r.fit(g.Theory)
		known = known || r.Known()
	}
	if !known && g.Theory == nil || len(counted) == 0 {
		return nil
	}
	g.judge(len(counted))
	return g
}

// theory uses the KV cache dtype that the engine reports, or the prediction if that assumed the same: it knows more
// shapes.
func theory(c *memory.Footprint, run *record.Run) *Theory {
	says := c.Says("kv_dtype")
	if p, ok := run.Predictions[c.Spec.ID]; ok && p.TokenB > 0 {
		if was := p.Setup["kv_dtype"]; says == "" || memory.SameDType(was, says) {
			how := "as predicted: keys and values of all layers in " + was
			return &Theory{float64(p.TokenB), how, record.OriginPredicted}
		}
	}
	if b := c.TokenBytes(); b > 0 {
		m := c.Spec.Model
		how := fmt.Sprintf("2 × %d layers × %d key-value heads × a head of %d × %s", m.Layers, m.KVHeads, m.HeadDim,
			says)
		return &Theory{b, how, record.OriginCalculated}
	}
	return nil
}

// follow adds a launch's slope, from its readings between the first and the last token.
func (r *Rate) follow(a *record.Attempt, t track, clock clocks) {
	r.Title, r.Method, r.Blind = t.title, t.method, t.blind
	if why := cmp.Or(untimed(a), t.refused(clock)); why != "" {
		r.Absent = why
		return
	}
	var slopes []float64
	requests := a.Measured()
	each := max(minReadings*4, stats.PointsAtMost/len(requests)) // the cost of a launch is independent of their number
	for _, q := range requests {
		points := stats.Bucketed(t.within(q), each)
		if len(points) < minReadings {
			r.Absent = fmt.Sprintf("fewer than %d readings during generation", minReadings)
			continue
		}
		if line, ok := stats.TheilSen(points); ok {
			if slopes = append(slopes, line.Slope*record.MiB); len(slopes) == 1 {
				r.line(a.ID, points, line)
			}
		}
	}
	r.Add(a.ID, stats.Median(slopes))
}

// within are a request's readings over the number of tokens at that time, including those of the prompt.
func (t track) within(q *record.Request) []stats.Point {
	var out []stats.Point
	per := float64(q.Tokened()) / float64(len(q.Tokens)) // tokens per piece
	first, last := q.Tokens[0].NS, q.Tokens[len(q.Tokens)-1].NS
	begin := sort.Search(len(t.readings), func(i int) bool { return t.readings[i].ns >= first })
	for _, r := range t.readings[begin:] {
		if r.ns > last {
			break
		}
		k := sort.Search(len(q.Tokens), func(i int) bool { return q.Tokens[i].NS > r.ns }) // tokens until then
		n := float64(k)
		if k < len(q.Tokens) {
			n += float64(r.ns-q.Tokens[k-1].NS) / float64(q.Tokens[k].NS-q.Tokens[k-1].NS)
		}
		out = append(out, stats.Point{X: float64(q.Prompted()) + n*per, Y: r.v})
	}
	return out
}

func (r *Rate) line(attempt int, points []stats.Point, fit stats.Line) {
	first := fit.Intercept + fit.Slope*points[0].X
	l := GrowthLine{Attempt: attempt}
	for _, p := range stats.Bucketed(points, stats.PointsAtMost) {
		l.Points = append(l.Points, GrowthAt{p.X, p.Y - first})
	}
	r.Lines = append(r.Lines, l)
}

// cacheRate is the growth of the reserved KV cache: from readings that come with tokens, else from those at the ends of
// phases.
func cacheRate(p memory.Part, counted []*record.Attempt, followed map[*record.Attempt][]track) Rate {
	r := Rate{Of: OfReserved, Figure: evidence.Figure{Name: p.Name, Title: p.Title, Method: p.Method,
		Blind: evidence.Blind(counted, p.Method),
		How:   growthHow + "; " + p.How}}
	if !evidence.Has(counted, p.Method) {
		return Rate{}
	}
	for a, clock := range timed(counted) {
		before := len(r.Values)
		for _, t := range followed[a] {
			if t.name == r.Name {
				r.follow(a, t, clock)
			}
		}
		// With several requests, the memory at the end is that of all of them, and the tokens are those of the last.
		if len(r.Values) > before || evidence.InFlight(a) > 1 {
			continue
		}
		points := edges(p, a)
		if line, ok := stats.TheilSen(points); ok {
			r.How, r.Method, r.Blind = edgesHow+"; "+p.How, p.Method, evidence.Blind(counted, p.Method)
			r.Add(a.ID, line.Slope*record.MiB)
			r.line(a.ID, points, line)
		}
	}
	r.Title = p.Title
	return r
}

// inDType adds the dtype of a KV cache to its title, if the engine reports it.
func (r *Rate) inDType(c *memory.Footprint) {
	if r.DType = c.Says("kv_dtype"); r.DType != "" {
		r.Title = strings.Replace(r.Title, "KV cache", "KV cache in "+r.DType, 1)
	}
}

// edges are a launch's memory at the ends of phases, over its tokens at that time.
func edges(p memory.Part, a *record.Attempt) []stats.Point {
	var out []stats.Point
	for _, phase := range []record.Phase{record.Warmup, record.Measure, record.Load} {
		of := a
		if phase != record.Measure {
			of = a.Launch()
		}
		v := p.At(of, phase)
		held, ok := heldTokens(of, phase)
		if ok && !math.IsNaN(v) {
			out = append(out, stats.Point{X: held, Y: v})
		}
	}
	return out
}

// heldTokens is the number of tokens of the last request before the end of a phase: 0 at the end of the load.
func heldTokens(a *record.Attempt, p record.Phase) (float64, bool) {
	if p == record.Load {
		return 0, true
	}
	for _, q := range slices.Backward(a.Requests) {
		if q.Phase == p && q.Prompted() > 0 {
			return float64(q.Prompted() + q.Tokened()), true
		}
	}
	return 0, false
}

// compareWith compares the rate with the calculated one.
func (r *Rate) compareWith(t *Theory) {
	if t == nil || !r.Known() {
		return
	}
	r.OfTheory = new(stats.Round(r.Center()/t.Bytes, 6))
}

// fit is the line to draw within launches: from the first token of any launch to the last one, beginning at 0.
func (r *Rate) fit(t *Theory) {
	if !r.Known() || len(r.Lines) == 0 {
		return
	}
	from, to := math.Inf(1), math.Inf(-1)
	for _, l := range r.Lines {
		for _, p := range l.Points {
			from, to = min(from, p.Tokens), max(to, p.Tokens)
		}
	}
	r.Fit = fitOver(from, 0, to, r.Center(), t)
}

// fitOver is a line with a slope in bytes per token.
func fitOver(from, mib, to, rate float64, t *Theory) *Fit {
	end := func(rate float64) GrowthAt {
		return GrowthAt{stats.Round(to, 3), stats.Round(mib+rate*(to-from)/record.MiB, 6)}
	}
	f := &Fit{From: GrowthAt{stats.Round(from, 3), stats.Round(mib, 6)}, To: end(rate)}
	if t != nil {
		f.Theory = new(end(t.Bytes))
	}
	return f
}

// judge writes the verdict of each rate.
func (g *Growth) judge(launches int) {
	flat := false
	for i := range g.Rates {
		r := &g.Rates[i]
		if r.Known() && r.N < launches && r.Interval == nil {
			r.Note = fmt.Sprintf("known in %d of %d launches", r.N, launches)
		}
		if r.N == 0 || slices.ContainsFunc(r.Values, func(v evidence.Value) bool { return v.Value != 0 }) {
			continue
		}
		switch {
		case r.Of == OfReserved:
			flat = true
			r.Verdict = "flat, because everything is reserved during the load"
		case r.Interval == nil:
			r.tooFew()
		default:
			r.Verdict = "flat"
		}
	}
	for i := range g.Rates {
		if r := &g.Rates[i]; r.Verdict == "" {
			r.judge(g.Theory, flat)
		}
	}
	for _, r := range g.Rates {
		if r.Known() {
			g.Verdict = append(g.Verdict,
				fmt.Sprintf("%s: %s bytes/token: %s", r.Title, rateWords(r.Center()), r.Verdict))
		}
	}
}

func (r *Rate) tooFew() {
	r.Few, r.Verdict = true, fmt.Sprintf("%s (%d) to see growth", evidence.TooFewRuns, r.N)
}

// judge writes a rate's verdict: it reports growth only if the interval excludes 0.
func (r *Rate) judge(t *Theory, flat bool) {
	iv := r.Interval
	because := ""
	if flat && r.Of == OfHeld {
		because = ", as expected: the KV cache is reserved during the load"
	}
	switch {
	case !r.Known():
		r.Verdict = r.Absent
	case t != nil && r.Rounded != nil && r.Rounded.Low <= t.Bytes && t.Bytes <= r.Rounded.High:
		r.Verdict = fmt.Sprintf("as calculated, within the rounding of the engine's log (%s)", r.Rounded)
	case t != nil && r.asked() && math.Abs(r.Center()/t.Bytes-1) < 0.005:
		r.Verdict = "as calculated"
	case iv == nil:
		r.tooFew()
	case iv.Lo <= 0 && iv.Hi >= 0:
		r.Verdict = "no significant growth" + because
		if because == "" && t != nil && iv.Hi >= t.Bytes {
			r.Verdict += fmt.Sprintf(", but the calculated %s cannot be ruled out", rateWords(t.Bytes))
		}
	case iv.Hi < 0:
		r.Verdict = "shrinks"
	case t == nil:
		r.Verdict = "grows; the calculated size of a token is not known"
	case iv.Lo > t.Bytes && because != "":
		r.Verdict = "grows, but not by the KV cache, which is reserved during the load"
	case iv.Lo > t.Bytes:
		r.Verdict = fmt.Sprintf("more than the calculated %s", rateWords(t.Bytes))
	case iv.Hi < t.Bytes:
		r.Verdict = fmt.Sprintf("less than the calculated %s", rateWords(t.Bytes))
	default:
		r.Verdict = fmt.Sprintf("grows; the calculated %s is within the interval", rateWords(t.Bytes))
	}
}

// asked reports whether the engine reserves exactly the same in each launch, so that the interval has no width.
func (r *Rate) asked() bool { return r.Of == OfReserved || r.Name == figure.Ledger }

// rateWords writes bytes per token.
func rateWords(v float64) string {
	if math.Abs(v) < 10 && v != math.Trunc(v) {
		return explain.Short(v)
	}
	return fmt.Sprintf("%.0f", v)
}
