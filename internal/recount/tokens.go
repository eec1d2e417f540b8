package recount

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What goes over tokens, how times are spread and what engines think of a given text, worked out again. Not worked out
// again: lines of readings, and most words.

// mib is how many bytes a MiB has.
const mib = 1 << 20

// unbounded is the size from which on a reading is none of memory, in MiB.
const unbounded = 1 << 40

// tokenResult is of a report's JSON what goes over tokens.
type tokenResult struct {
	Cells []struct {
		Over *struct {
			Lines []struct {
				Name   string
				N      int
				Median []overPoint
			}
		} `json:"over_tokens"`
		Growth *struct {
			Theory *struct {
				Bytes float64 `json:"bytes_per_token"`
			}
			Rates   []growthRate
			Verdict []string
		} `json:"kv_growth"`
		Distributions []struct {
			Name        string
			N, Launches int
			Quantiles   []struct {
				Share, Value float64
				ByLaunch     *figure `json:"by_launch"`
			}
		}
	}
	Sweeps []sweep
	Parity []struct {
		A, B   int
		ByText bool `json:"by_text"`
		First  *struct {
			Index    int
			MarginA  *margin `json:"margin_a"`
			MarginB  *margin `json:"margin_b"`
			Rounding bool    `json:"rounding_is_enough"`
		} `json:"first_divergence"`
		Forced *forcedText `json:"teacher_forced"`
	}
}

type overPoint struct {
	Token, N int
	Median   float64
	Lo, Hi   *float64
}

type growthRate struct {
	figure
	OfTheory *float64 `json:"of_theory"`
	Verdict  string
	Fit      *drawnLine
	Points   []launchPoint
}

type margin struct {
	Nats   float64
	ID     int
	NextID int `json:"next_id"`
}

type forcedText struct {
	Positions, Agreed int
	Share             float64
	OwnA              int `json:"says_the_text_a"`
	OwnB              int `json:"says_the_text_b"`
	Differing         []struct {
		Index   int
		MarginA margin `json:"margin_a"`
		MarginB margin `json:"margin_b"`
	}
	Distance *struct {
		Compared  int
		Max       float64 `json:"max_abs"`
		Mean      float64 `json:"mean_abs"`
		MaxAt     int     `json:"max_at"`
		MaxLikely float64 `json:"max_abs_likely"`
		KLMean    float64 `json:"kl_mean_at_least"`
		KLMax     float64 `json:"kl_max_at_least"`
	}
}

// tokens holds what goes over tokens against the folders.
func (c *check) tokens(text []byte) {
	c.Helper()
	var res tokenResult
	if err := json.Unmarshal(text, &res); err != nil {
		c.Fatal(err)
	}
	all := c.evidence
	for i, cell := range res.Cells {
		label, id, e := c.res.Cells[i].Label, c.res.Cells[i].Spec.ID, all[c.res.Cells[i].Run]
		again := kept(c.Work, "tokens"+c.cell(i), func() *tokensAgain { return e.again(id) })
		spread := map[string]bool{}
		for _, d := range cell.Distributions {
			spread[d.Name] = true
			pooled := again.spread(d.Name)
			c.same(label+", "+d.Name+": pooled", float64(d.N), float64(len(pooled.all)))
			c.same(label+", "+d.Name+": launches", float64(d.Launches), float64(len(pooled.each)))
			c.same(label+", "+d.Name+": quantiles", float64(len(d.Quantiles)), 4)
			for _, q := range d.Quantiles {
				c.quantile(fmt.Sprintf("%s: p%g of %s", label, 100*q.Share, d.Name), int(math.Round(100*q.Share)),
					q.Value, q.ByLaunch, pooled)
			}
		}
		for _, name := range []string{"ttft", "inter_token_latency", "latency"} {
			c.present(label+": how "+name+" is spread", spread[name], len(again.spread(name).all) > 0)
		}
		got := map[string][]overPoint{}
		if cell.Over != nil {
			for _, l := range cell.Over.Lines {
				got[l.Name] = l.Median
			}
		}
		want := again.over
		for _, name := range union(got, want) {
			_, there := got[name]
			_, again := want[name]
			if c.present(label+": "+name+" over tokens", there, again); there && again {
				c.over(label+": "+name, got[name], want[name])
			}
		}
		rates := map[string]growthRate{}
		theory := e.theory(id)
		if cell.Growth != nil {
			for _, r := range cell.Growth.Rates {
				rates[r.Name] = r
			}
			if c.present(label+": theory", cell.Growth.Theory != nil, theory > 0); theory > 0 &&
				cell.Growth.Theory != nil {
				c.near(label+": bytes a token by theory", cell.Growth.Theory.Bytes, theory)
			}
		}
		slopes := again.slopes
		for _, name := range union(rates, slopes) {
			c.rate(label+": growth of "+name, rates[name], slopes[name], theory)
		}
		if cell.Growth != nil {
			c.grown(label, cell.Growth.Rates, cell.Growth.Verdict, slopes, theory)
		}
	}
	c.sweeps(res.Sweeps)
	c.forced(res, all)
}

// tokensAgain is all that was worked out of a cell.
type tokensAgain struct {
	counted []*attempt
	spreads map[string]spread
	over    map[string]overLine
	slopes  map[string]slope
}

func (e *evidence) again(cell int) *tokensAgain {
	out := &tokensAgain{counted: e.counted(cell), spreads: map[string]spread{}}
	tracks := map[int][]*track{}
	for _, a := range out.counted {
		tracks[a.id] = e.tracks(a)
	}
	out.over, out.slopes = e.over(out.counted, tracks), e.slopes(out.counted, tracks)
	return out
}

func (t *tokensAgain) spread(name string) spread {
	if _, ok := t.spreads[name]; !ok {
		t.spreads[name] = spreadOf(t.counted, name)
	}
	return t.spreads[name]
}

func union[A, B any](a map[string]A, b map[string]B) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

func (c *check) present(what string, got, want bool) {
	c.Helper()
	c.compared++
	if got != want {
		c.Errorf("%s: it is in the report: %v, and worked out again: %v", what, got, want)
	}
}

// near is for what was rounded to six digits behind the point: a sum in another order may be rounded the other way.
func (c *check) near(what string, got, want float64) {
	c.Helper()
	c.compared++
	if !(math.Abs(got-want) <= 1.5e-6+1e-9*math.Abs(want)) {
		c.Errorf("%s is %v in the report, and %v worked out again", what, got, want)
	}
}

// spread is what something took, of each launch and of all.
type spread struct {
	all      []float64
	each     [][]float64
	attempts []int
}

func spreadOf(counted []*attempt, name string) spread {
	var s spread
	for _, a := range counted {
		var own []float64
		for _, r := range a.measured() {
			for _, v := range r.waits(name) {
				if v >= 0 {
					own = append(own, v)
				}
			}
		}
		if len(own) > 0 {
			slices.Sort(own)
			s.each, s.attempts, s.all = append(s.each, own), append(s.attempts, a.id), append(s.all, own...)
		}
	}
	slices.Sort(s.all)
	return s
}

func (a *attempt) measured() []*request {
	return slices.DeleteFunc(slices.Clone(a.requests), func(r *request) bool { return r.Phase != "measure" })
}

// waits are the times of a request, in ms: one, or that of each gap between tokens.
func (r *request) waits(name string) []float64 {
	switch {
	case name == "latency":
		return []float64{float64(r.Returned-r.due()) / 1e6}
	case len(r.times) == 0:
		return nil
	case name == "ttft":
		return []float64{float64(r.times[0]-r.due()) / 1e6}
	case !r.decoded():
		return nil
	}
	var out []float64
	sizes, times := r.chunks()
	for i := 1; i < len(sizes); i++ {
		if times[i] < times[i-1] {
			return nil
		}
		for range sizes[i] {
			out = append(out, float64(times[i]-times[i-1])/1e6/float64(sizes[i]))
		}
	}
	return out
}

func (r *request) decoded() bool {
	return slices.ContainsFunc(r.spans, func(s span) bool { return s.Name == "decode" })
}

// quantile holds one by nearest rank, over all and by launches.
func (c *check) quantile(what string, percent int, value float64, by *figure, s spread) {
	rank := func(sorted []float64) float64 { return sorted[max(1, (percent*len(sorted)+99)/100)-1] }
	if len(s.all) == 0 {
		return
	}
	c.near(what, value, rank(s.all))
	again := Figure{}
	enough := true
	for _, own := range s.each {
		enough = enough && (percent == 50 || len(own)*(100-percent) >= 100)
		again.Values = append(again.Values, math.Round(rank(own)*1e6)/1e6)
	}
	if c.present(what+" by launch", by != nil, enough); by == nil || !enough {
		return
	}
	again.conclude()
	c.values(what+" by launch", *by, again, s.attempts)
}

// values hold a figure with its launches.
func (c *check) values(what string, f figure, again Figure, attempts []int) {
	c.same(what+", n", float64(f.N), float64(len(again.Values)))
	for k, v := range f.Values {
		if k < len(again.Values) {
			c.same(what+", its launch", float64(v.Attempt), float64(attempts[k]))
			c.near(fmt.Sprintf("%s, launch %d", what, v.Attempt), v.Value, again.Values[k])
		}
	}
	if c.present(what+", median", f.Median != nil, len(again.Values) > 0); f.Median != nil && len(again.Values) > 0 {
		c.near(what+", median", *f.Median, again.Median)
	}
	if c.present(what+", interval", f.Interval != nil, !math.IsNaN(again.Lo)); f.Interval != nil {
		c.near(what+", lower end", f.Interval.Lo, again.Lo)
		c.near(what+", upper end", f.Interval.Hi, again.Hi)
	}
}

// source is what rows came from.
type source struct {
	ID           int
	Role, Method string
	Every        int64 `json:"every_ns"`
}

type clock struct {
	Isolate string
	Offset  int64 `json:"offset_ns"`
	Error   int64 `json:"error_ns"`
}

// reading is a row of a CSV file with its source.
type reading struct {
	source, name, edge string
	at, took           int64
	value              float64
}

// place is what an engine thought of one place in a text.
type place struct {
	forced int
	top    []int // the likeliest first
	p      map[int]float64
}

type scoring struct {
	cell   int
	prompt []int
	at     []place
}

// evidence is a folder with what of it goes over tokens; by attempt, but what cells have.
type evidence struct {
	*folder
	sources  map[int]map[string]source
	clocks   map[int][]clock
	metrics  map[int][]reading
	samples  map[int][]reading
	totals   map[int][]reading
	scorings map[int]*scoring
	order    []int // of scorings
	shape    map[int]float64
	contexts map[int]int
	policy   map[int]map[string]string // by cell
	token    map[int]foretoldToken
}

// foretoldToken is what a token was foretold to take in the KV cache.
type foretoldToken struct {
	bytes float64
	dtype string
}

func newEvidence(f *folder) *evidence {
	return &evidence{folder: f, sources: map[int]map[string]source{}, clocks: map[int][]clock{},
		metrics: map[int][]reading{},
		samples: map[int][]reading{}, totals: map[int][]reading{}, scorings: map[int]*scoring{},
		shape:    map[int]float64{},
		contexts: map[int]int{}, policy: map[int]map[string]string{}, token: map[int]foretoldToken{}}
}

func gather(f *folder) (*evidence, error) {
	e := newEvidence(f)
	if err := e.lines(filepath.Join(f.dir, "journal.jsonl")); err != nil {
		return nil, err
	}
	into := func(of map[int][]reading, source, name, value string) func(row) error {
		return func(r row) error {
			a := int(whole(r, "attempt"))
			of[a] = append(of[a], reading{r.text(source), r.text(name), r.text("edge"), whole(r, "t_ns"),
				max(0, whole(r, "read_ns")), size(r, value)})
			return nil
		}
	}
	for _, file := range []struct {
		name string
		each func(row) error
	}{
		{"metrics.csv", into(e.metrics, "source", "name", "value")},
		{"samples.csv", into(e.samples, "source", "role", "rss_mb")},
		{"totals.csv", func(r row) error {
			a := int(whole(r, "attempt"))
			for name, column := range map[string]string{"pss": "pss_mb", "rss": "rss_sum_mb"} {
				e.totals[a] = append(e.totals[a],
					reading{r.text("method"), name, "", whole(r, "t_ns"), max(0, whole(r, "read_ns")), size(r, column)})
			}
			return nil
		}},
		{"scores.csv", e.score},
	} {
		if err := f.rows(file.name, file.each); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	return e, nil
}

func (e *evidence) lines(path string) error {
	return eachLine(path, func(line []byte) error {
		var l struct {
			Attempt int
			Cell    *struct {
				ID    int
				Model struct {
					Layers  float64
					KVHeads float64 `json:"kv_heads"`
					HeadDim float64 `json:"head_dim"`
					Context int
				}
			}
			Begin *struct {
				Cell    int
				Scoring *struct {
					PromptIDs []int `json:"prompt_ids"`
				}
			}
			Source *source
			Event  *struct {
				Clock  *clock
				Engine *struct{ Policy map[string]string }
			}
			Prediction *struct {
				Cell  int
				Setup map[string]string
				Token float64 `json:"kv_bytes_per_token"`
			}
		}
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		switch {
		case l.Cell != nil:
			e.shape[l.Cell.ID] = 2 * l.Cell.Model.Layers * l.Cell.Model.KVHeads * l.Cell.Model.HeadDim
			e.contexts[l.Cell.ID], e.policy[l.Cell.ID] = l.Cell.Model.Context, map[string]string{}
		case l.Prediction != nil:
			if l.Prediction.Token > 0 {
				e.token[l.Prediction.Cell] = foretoldToken{l.Prediction.Token, l.Prediction.Setup["kv_dtype"]}
			}
		case l.Begin != nil && l.Begin.Scoring != nil:
			e.scorings[l.Attempt] = &scoring{cell: l.Begin.Cell, prompt: l.Begin.Scoring.PromptIDs}
			e.order = append(e.order, l.Attempt)
		case l.Source != nil:
			if e.sources[l.Attempt] == nil {
				e.sources[l.Attempt] = map[string]source{}
			}
			e.sources[l.Attempt][fmt.Sprint(l.Source.ID)] = *l.Source
		case l.Event != nil && l.Event.Clock != nil:
			e.clocks[l.Attempt] = append(e.clocks[l.Attempt], *l.Event.Clock)
		case l.Event != nil && l.Event.Engine != nil && e.by[l.Attempt] != nil:
			e.says(e.by[l.Attempt].cell, l.Event.Engine.Policy)
		}
		return nil
	})
}

// says keeps what an engine tells of its settings, or was taken for granted.
func (e *evidence) says(cell int, policy map[string]string) {
	for key, v := range policy {
		if v != "" && e.policy[cell] != nil {
			e.policy[cell][key] = v
		}
	}
}

func (e *evidence) score(r row) error {
	s := e.scorings[int(whole(r, "attempt"))]
	if s == nil {
		return fmt.Errorf("a score of no attempt: %v", r.fields)
	}
	at, id := int(whole(r, "position")), int(whole(r, "id"))
	if at == len(s.at) {
		s.at = append(s.at, place{p: map[int]float64{}})
	}
	p := &s.at[at]
	if r.text("forced") == "1" {
		p.forced = id
	}
	if whole(r, "rank") > 0 {
		p.top = append(p.top, id)
	}
	if v := size(r, "logprob"); !math.IsNaN(v) {
		p.p[id] = v
	}
	return nil
}

func (e *evidence) counted(cell int) []*attempt {
	return slices.DeleteFunc(slices.Clone(e.attempts), func(a *attempt) bool { return a.cell != cell || !a.counted })
}

// theory is what a token takes in the KV cache: a key and a value a layer and head. 0: not known.
func (e *evidence) theory(cell int) float64 {
	says := e.policy[cell]["kv_dtype"]
	if says == "not told" {
		says = ""
	}
	if p, foretold := e.token[cell]; foretold &&
		(says == "" || strings.EqualFold(says, p.dtype) || numberBytes(says) == numberBytes(p.dtype)) {
		return p.bytes
	}
	return e.shape[cell] * numberBytes(says)
}

// numberBytes is how many bytes a number of a type takes; 0: not known.
func numberBytes(dtype string) float64 {
	bytes := map[string]float64{"f32": 4, "float32": 4, "f16": 2, "bf16": 2, "float16": 2, "bfloat16": 2,
		"q8_0": 1.0625, "q4_0": 0.5625,
		"fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}
	return bytes[strings.ToLower(dtype)]
}

// track is a quantity of a launch over time, in MiB.
type track struct {
	name      string
	every     int64 // between readings; 0: told with tokens
	at        []int64
	v         []float64
	all, back int
}

// tracks are what can be followed of a launch while it was measured.
func (e *evidence) tracks(a *attempt) []*track {
	i := slices.IndexFunc(a.phases, func(p span) bool { return p.Name == "measure" })
	if i < 0 || len(a.measured()) == 0 {
		return nil
	}
	begin, end := a.phases[i].Begin, a.end+1
	if i+1 < len(a.phases) {
		end = a.phases[i+1].Begin
	}
	var out []*track
	follow := func(name string, every int64, rows []reading, unit float64) {
		t := &track{name: name, every: every}
		for _, r := range rows {
			at, v := r.at-r.took/2, r.value/unit
			switch n := len(t.at); {
			case math.IsNaN(v) || math.Abs(v) > unbounded || at < begin-3*every || at > end+3*every:
				continue
			case n > 0 && at < t.at[n-1]:
				t.back++
			case n == 0 || at > t.at[n-1]:
				t.at, t.v = append(t.at, at), append(t.v, v)
			}
			t.all++
		}
		if len(t.at) > 0 {
			out = append(out, t)
		}
	}
	of := func(rows []reading, source, name string) []reading {
		return slices.DeleteFunc(slices.Clone(rows),
			func(r reading) bool { return r.source != source || r.name != name })
	}
	every, sources := map[string]int64{}, slices.Collect(maps.Values(e.sources[a.id]))
	slices.SortFunc(sources, func(x, y source) int { return x.ID - y.ID })
	for _, s := range sources {
		every[s.Method] = max(every[s.Method], s.Every)
	}
	rss := "smaps_rollup"
	for _, r := range e.totals[a.id] {
		if r.source != rss {
			rss = r.source
			break
		}
	}
	follow("total_pss", every["smaps_rollup"], of(e.totals[a.id], "smaps_rollup", "pss"), 1)
	follow("rss_sum", every[rss], of(e.totals[a.id], rss, "rss"), 1)
	sources = slices.DeleteFunc(sources, func(s source) bool { return s.Method != rss })
	page := slices.DeleteFunc(slices.Clone(sources),
		func(s source) bool { return s.Role != "renderer" && s.Role != "gpu-process" })
	if len(page) > 0 {
		sources = page
	} else if len(sources) == 1 {
		sources = nil
	}
	roles := map[string]int{}
	for _, s := range sources {
		name := "rss:" + s.Role
		if roles[s.Role]++; roles[s.Role] > 1 {
			name = fmt.Sprintf("%s#%d", name, roles[s.Role])
		}
		follow(name, s.Every, of(e.samples[a.id], fmt.Sprint(s.ID), s.Role), 1)
	}
	for name, m := range map[string][2]string{"webgpu_ledger": {"webgpu_ledger", "live_bytes"},
		"kv_reserved": {"webgpu_ledger", "kv_reserved_bytes"},
		"js_heap":     {"performance_metrics", "js_heap_used_bytes"}} {
		from := map[string]bool{}
		var told []reading
		for _, r := range e.metrics[a.id] {
			if r.name == m[1] && e.sources[a.id][r.source].Method == m[0] && r.at >= begin-1e6 && r.at <= end {
				from[r.source], told = true, append(told, r)
			}
		}
		slices.SortStableFunc(told, func(x, y reading) int { return int(max(-1, min(1, x.at-y.at))) })
		if len(from) == 1 {
			follow(name, e.sources[a.id][told[0].source].Every, told, mib)
		}
	}
	return out
}

// usable tells whether a track can be laid on the times of tokens: it is in order, and its clock did not drift by a
// step.
func (e *evidence) usable(a *attempt, t *track) bool {
	if 10*t.back > t.all {
		return false
	}
	first, last := map[string]clock{}, map[string]clock{}
	for _, b := range e.attempts {
		if b.opener != a.opener || b.cell != a.cell || b.id != a.opener && !b.counted {
			continue
		}
		for _, c := range e.clocks[b.id] {
			if _, seen := first[c.Isolate]; !seen {
				first[c.Isolate] = c
			} else {
				last[c.Isolate] = c
			}
		}
	}
	for isolate, c := range first {
		end, checked := last[isolate]
		if !checked {
			end = clock{Offset: c.Offset}
		}
		drift := max(end.Offset-c.Offset, c.Offset-end.Offset)
		if t.every > 0 && (c.Error > t.every || drift-c.Error-end.Error > t.every) {
			return false
		}
	}
	return true
}

// timed tells whether each token has a time of its own.
func (a *attempt) timed() bool {
	if a.overlapping() {
		return false
	}
	for _, r := range a.measured() {
		if len(r.times) == 0 || len(r.times) > 1 && !r.decoded() || !slices.IsSorted(r.times) {
			return false
		}
	}
	return true
}

// overlapping tells that several requests were under way at once: what they take is nobody's.
func (a *attempt) overlapping() bool {
	for _, r := range a.measured() {
		for _, other := range a.measured() {
			if r.ID != other.ID && r.Sent >= other.Sent && r.Sent < other.Returned {
				return true
			}
		}
	}
	return false
}

// value is that at a time, on the straight line between two readings; NaN beyond them, and in a gap.
func (t *track) value(at int64) float64 {
	gap := 3 * t.every
	if t.every == 0 {
		var steps []float64
		for i := 1; i < len(t.at); i++ {
			steps = append(steps, float64(t.at[i]-t.at[i-1]))
		}
		gap = 0
		if len(steps) > 0 {
			gap = int64(3 * middle(steps))
		}
	}
	for i, ns := range t.at {
		switch {
		case ns == at:
			return t.v[i]
		case i > 0 && t.at[i-1] < at && at < ns && ns-t.at[i-1] <= gap:
			share := float64(at-t.at[i-1]) / float64(ns-t.at[i-1])
			return (1-share)*t.v[i-1] + share*t.v[i]
		}
	}
	return math.NaN()
}

// overLine is a quantity at each place that some launch has it at.
type overLine struct {
	places []int
	points []Figure
	n      int
}

// over are the tracks of a cell's launches at the times of tokens: 0 is when a request was sent. Of many tokens 160
// places are kept.
func (e *evidence) over(counted []*attempt, tracks map[int][]*track) map[string]overLine {
	most := 0
	for _, a := range counted {
		for _, r := range a.measured() {
			most = max(most, len(r.times))
		}
	}
	if most == 0 {
		return nil
	}
	var places []int
	n := min(most, 160)
	for i := range n + 1 {
		places = append(places, int(math.Round(float64(i)*float64(most)/float64(n))))
	}
	out := map[string]overLine{}
	for _, a := range counted {
		for _, t := range tracks[a.id] {
			if !a.timed() || !e.usable(a, t) || t.every == 0 && len(t.at) < 5 {
				continue
			}
			line, some := out[t.name], false
			if line.points == nil {
				line.points = make([]Figure, len(places))
			}
			for i, k := range places {
				var values []float64
				for _, r := range a.measured() {
					if k > len(r.times) {
						continue
					}
					at := r.Sent
					if k > 0 {
						at = r.times[k-1]
					}
					if v := t.value(at); !math.IsNaN(v) {
						values = append(values, v)
					}
				}
				if len(values) > 0 {
					some, line.points[i].Values = true, append(line.points[i].Values, middle(values))
				}
			}
			if some {
				line.n++
				line.places = places
				out[t.name] = line
			}
		}
	}
	return out
}

func (c *check) over(what string, got []overPoint, want overLine) {
	at := map[int]overPoint{}
	for _, p := range got {
		at[p.Token] = p
	}
	for i, k := range want.places {
		f := want.points[i]
		p, there := at[k]
		where := fmt.Sprintf("%s at token %d", what, k)
		enough := len(f.Values) > 0 && 2*len(f.Values) >= want.n
		if c.present(where, there, enough); !there || !enough {
			continue
		}
		delete(at, k)
		f.conclude()
		c.same(where+", launches", float64(p.N), float64(len(f.Values)))
		c.near(where+", median", p.Median, f.Median)
		if c.present(where+", interval", p.Lo != nil && p.Hi != nil, !math.IsNaN(f.Lo)); p.Lo != nil && p.Hi != nil {
			c.near(where+", lower end", *p.Lo, f.Lo)
			c.near(where+", upper end", *p.Hi, f.Hi)
		}
	}
	c.same(what+": places that are none", float64(len(at)), 0)
}

// point is a place on a line that is to be found: tokens and MiB.
type point struct{ x, y float64 }

// slopesOf are those of all pairs of points that differ in x, in order.
func slopesOf(points []point) []float64 {
	var out []float64
	for i := range points {
		for j := range i {
			if dx := points[i].x - points[j].x; dx != 0 {
				out = append(out, (points[i].y-points[j].y)/dx*mib)
			}
		}
	}
	slices.Sort(out)
	return out
}

// stretched keeps the first point of each of n equal stretches, where there are more than n.
func stretched(points []point, n int) []point {
	if len(points) <= n {
		return points
	}
	from, to := points[0].x, points[0].x
	for _, p := range points {
		from, to = min(from, p.x), max(to, p.x)
	}
	if from == to {
		return points[:n]
	}
	var out []point
	taken := map[int]bool{}
	for _, p := range points {
		if k := min(n-1, int((p.x-from)/((to-from)/float64(n)))); !taken[k] {
			taken[k], out = true, append(out, p)
		}
	}
	return out
}

// slope is a quantity's growth, a value a launch.
type slope struct {
	Figure
	attempts []int
	reach    []float64 // tokens at which there are points of the lines
}

func (s *slope) add(a *attempt, v float64) bool {
	if !math.IsNaN(v) {
		s.Values, s.attempts = append(s.Values, math.Round(v*1e6)/1e6), append(s.attempts, a.id)
	}
	return !math.IsNaN(v)
}

// slopes are by what memory grows with a token while there came any; a KV cache that is not followed then by its
// readings at phases' ends.
func (e *evidence) slopes(counted []*attempt, tracks map[int][]*track) map[string]slope {
	out := map[string]slope{}
	for _, a := range counted {
		for _, t := range tracks[a.id] {
			if !strings.HasPrefix(t.name, "kv_") {
				s := out[t.name]
				v, reach := e.within(a, t)
				s.add(a, v)
				s.reach = append(s.reach, reach...)
				out[t.name] = s
			}
		}
	}
	if method, name := e.cacheMethod(counted), "kv_reserved"; method != "" {
		s := out[name]
		for _, a := range counted {
			i := slices.IndexFunc(tracks[a.id], func(t *track) bool { return t.name == name })
			if i >= 0 {
				v, reach := e.within(a, tracks[a.id][i])
				if s.add(a, v) {
					s.reach = append(s.reach, reach...)
					continue
				}
			}
			if points := e.edges(a, method, name); !a.overlapping() && s.add(a, middle(slopesOf(points))) {
				for _, p := range points {
					s.reach = append(s.reach, p.x)
				}
			}
		}
		out[name] = s
	}
	for name, s := range out {
		s.conclude()
		out[name] = s
	}
	return out
}

// cacheMethod is how a cell's KV cache is told of: by the ledger of the page, else by the engine's log.
func (e *evidence) cacheMethod(counted []*attempt) string {
	for _, method := range []string{"webgpu_ledger", "engine_log"} {
		for _, a := range counted {
			for _, s := range e.sources[a.id] {
				if s.Method == method {
					return method
				}
			}
		}
	}
	return ""
}

// within is the slope of a launch by readings from its first token to its last; of several requests the median. reach
// is where the first line's readings are.
func (e *evidence) within(a *attempt, t *track) (slope float64, reach []float64) {
	if !a.timed() || !e.usable(a, t) {
		return math.NaN(), nil
	}
	var all []float64
	requests := a.measured()
	for _, r := range requests {
		var points []point
		for i, at := range t.at {
			n := len(r.times)
			if at < r.times[0] || at > r.times[n-1] {
				continue
			}
			by := 0 // tokens by then
			for by < n && r.times[by] <= at {
				by++
			}
			tokens := float64(by)
			if by < n {
				tokens += float64(at-r.times[by-1]) / float64(r.times[by]-r.times[by-1])
			}
			points = append(points, point{r.prompted() + tokens*r.answered()/float64(n), t.v[i]})
		}
		if points = stretched(points, max(20, 200/len(requests))); len(points) >= 5 {
			if slopes := slopesOf(points); len(slopes) > 0 {
				all = append(all, middle(slopes))
				for _, p := range points {
					if len(all) == 1 {
						reach = append(reach, p.x)
					}
				}
			}
		}
	}
	return middle(all), reach
}

// grown holds what is made of rates within launches: lines to draw, and verdicts.
func (c *check) grown(label string, rates []growthRate, verdicts []string, slopes map[string]slope, theory float64) {
	still := func(r growthRate) bool {
		for _, v := range slopes[r.Name].Values {
			if v != 0 {
				return false
			}
		}
		return len(slopes[r.Name].Values) > 0
	}
	reserved := slices.ContainsFunc(rates, func(r growthRate) bool { return r.Name == "kv_reserved" && still(r) })
	k := 0
	for _, r := range rates {
		what, s := label+": growth of "+r.Name, slopes[r.Name]
		known := len(s.Values) > 0
		if known && len(s.reach) > 0 {
			c.fit(what, r.Fit, true, slices.Min(s.reach), 0, slices.Max(s.reach), s.Median, theory)
		} else {
			c.fit(what, r.Fit, false, 0, 0, 0, 0, 0)
		}
		if !known || r.Median == nil {
			continue
		}
		verdict := "flat"
		if !still(r) {
			verdict = r.called(theory, reserved)
		} else if r.Name == "kv_reserved" {
			verdict = "flat, because it is all reserved at the load"
		}
		c.verdict(what, r, verdict, verdicts, k)
		k++
	}
	c.same(label+": verdicts on growth", float64(len(verdicts)), float64(k))
}

func (r *request) prompted() float64 { return float64(max(len(r.PromptIDs), r.Prompted)) }

func (r *request) answered() float64 {
	if r.Generated > 0 {
		return float64(r.Generated)
	}
	return float64(len(r.times))
}

// edges are what the KV cache was told to be when the warm-up and the measurement ended, over the tokens of the last
// request before. At the load's end there are none.
func (e *evidence) edges(a *attempt, method, name string) []point {
	var out []point
	for _, phase := range []string{"warmup", "measure", "load"} {
		of, held := a, math.NaN()
		if phase != "measure" {
			of = e.by[a.opener]
		}
		for _, r := range of.requests {
			if r.Phase == phase && r.prompted() > 0 {
				held = r.prompted() + r.answered()
			}
		}
		if phase == "load" {
			held = 0
		}
		if v := e.edge(of, phase, method, name); !math.IsNaN(v) && !math.IsNaN(held) {
			out = append(out, point{held, v})
		}
	}
	return out
}

// edge is what the KV cache was told to be when a phase ended, over the sources that tell.
func (e *evidence) edge(a *attempt, phase, method, name string) float64 {
	of := map[string]float64{}
	for _, r := range e.metrics[a.id] {
		if r.edge == phase && r.name == name+"_bytes" && e.sources[a.id][r.source].Method == method {
			of[r.source] = r.value / mib
		}
	}
	if len(of) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range of {
		sum += v
	}
	return sum
}

func (c *check) rate(what string, got growthRate, want slope, theory float64) {
	c.values(what, got.figure, want.Figure, want.attempts)
	if c.present(what+", of theory", got.OfTheory != nil, theory > 0 && len(want.Values) > 0); got.OfTheory != nil {
		c.near(what+", of theory", *got.OfTheory, want.Median/theory)
	}
}

// line holds one through launches of several cells, with Sen's interval by ranks of the slopes.
func (c *check) line(what string, r growthRate, points []point, theory float64) {
	slopes := slopesOf(points)
	c.same(what+", launches", float64(r.N), float64(len(points)))
	if c.present(what, r.Median != nil, len(slopes) > 0); r.Median == nil || len(slopes) == 0 {
		return
	}
	c.near(what+", slope", *r.Median, middle(slopes))
	n, tied := float64(len(points)), map[float64]float64{}
	for _, p := range points {
		tied[p.x]++
	}
	variance := n * (n - 1) * (2*n + 5) / 18
	for _, t := range tied {
		variance -= t * (t - 1) * (2*t + 5) / 18
	}
	half := 1.959963984540054 * math.Sqrt(variance) / 2
	lower, upper := int(math.Floor(float64(len(slopes))/2-half)), int(math.Ceil(float64(len(slopes))/2+half))+1
	enough := lower >= 1 && upper <= len(slopes)
	if c.present(what+", interval", r.Interval != nil, enough); r.Interval != nil && enough {
		c.near(what+", lower end", r.Interval.Lo, slopes[lower-1])
		c.near(what+", upper end", r.Interval.Hi, slopes[upper-1])
	}
	if c.present(what+", of theory", r.OfTheory != nil, theory > 0); r.OfTheory != nil {
		c.near(what+", of theory", *r.OfTheory, middle(slopes)/theory)
	}
}

// scored is the last text that a cell scored; nil where there is none.
func (e *evidence) scored(cell int) *scoring {
	var last *scoring
	for _, attempt := range e.order {
		if s := e.scorings[attempt]; s.cell == cell && len(s.at) > 0 {
			last = s
		}
	}
	return last
}

// alike is how far two texts are the same.
func (s *scoring) alike(text []int) int {
	n := 0
	for n < len(s.at) && n < len(text) && s.at[n].forced == text[n] {
		n++
	}
	return n
}

func (p place) margin() margin {
	return margin{p.p[p.top[0]] - p.p[p.top[1]], p.top[0], p.top[1]}
}

// turned is how far the likeliest token lies above any of those that were said, or above the next one; of what nobody
// told, above the last.
func (p place) turned(said ...int) float64 {
	widest := p.margin().Nats
	for _, id := range said {
		v, known := p.p[id]
		if !known {
			v = p.p[p.top[len(p.top)-1]]
		}
		widest = max(widest, p.p[p.top[0]]-v)
	}
	return widest
}

func (c *check) forced(res tokenResult, all []*evidence) {
	for n, p := range res.Parity {
		a, b := c.cells[p.A], c.cells[p.B]
		what := c.res.Cells[p.A].Label + " and " + c.res.Cells[p.B].Label
		x, y := all[c.res.Cells[p.A].Run].scored(a.ID), all[c.res.Cells[p.B].Run].scored(b.ID)
		asked := x != nil && y != nil && slices.Equal(x.prompt, y.prompt) && len(a.ids) > 0 && len(b.ids) > 0
		var likely []float64
		if c.present(what+": the same text forced on both", p.Forced != nil, asked); asked && p.Forced != nil {
			likely = c.forcedText(what, p.Forced, x, y)
		}
		if p.First != nil && !p.ByText && len(a.ids) > 0 && len(b.ids) > 0 {
			c.parting(what, res, n, [2]*scoring{x, y}, likely)
		}
	}
}

// parting holds the margins where two free runs part, and whether rounding is enough to part them.
func (c *check) parting(what string, res tokenResult, n int, s [2]*scoring, likely []float64) {
	p := res.Parity[n]
	cells := [2]*Cell{c.cells[p.A], c.cells[p.B]}
	index := p.First.Index
	said := [2]int{cells[0].ids[0][index], cells[1].ids[0][index]}
	widest, known := 0.0, false
	for side, got := range [2]*margin{p.First.MarginA, p.First.MarginB} {
		what := fmt.Sprintf("%s: the margin of side %d where they part", what, side+1)
		prompt := cells[side].prompts[0]
		same := len(cells[0].prompts[0]) == 0 || len(cells[1].prompts[0]) == 0 ||
			slices.Equal(cells[0].prompts[0], cells[1].prompts[0])
		told := s[side] != nil && same && index < len(s[side].at) && slices.Equal(prompt, s[side].prompt) &&
			s[side].alike(cells[side].ids[0][:index]) == index
		if c.present(what, got != nil, told); got == nil || !told {
			continue
		}
		at := s[side].at[index]
		c.margin(what, *got, at.margin())
		widest, known = max(widest, at.turned(said[:]...)), true
	}
	enough := known && widest <= 0.1
	if other := 0.0; len(likely) > 8 {
		for at, v := range likely {
			if at != index {
				other = max(other, v)
			}
		}
		enough = enough && (widest <= 10*other || widest <= 0.001)
	}
	c.compared++
	if p.First.Rounding != enough {
		c.Errorf("%s: rounding is enough is %v in the report, and %v worked out again", what, p.First.Rounding, enough)
	}
}

func (c *check) margin(what string, got, want margin) {
	c.same(what, got.Nats, want.Nats)
	c.same(what+", the likeliest", float64(got.ID), float64(want.ID))
	c.same(what+", the next", float64(got.NextID), float64(want.NextID))
}

// forcedText holds two engines' opinions of one text, and gives how far their likely tokens lie apart at each place.
func (c *check) forcedText(what string, f *forcedText, x, y *scoring) []float64 {
	var text []int
	for _, p := range y.at {
		text = append(text, p.forced)
	}
	n := min(x.alike(text)+1, len(x.at), len(y.at))
	agreed, ownA, ownB, told, farthest, farthestAt, sum, klSum, klMost, parted := 0, 0, 0, 0, 0.0, 0, 0.0, 0.0, 0.0, 0
	likely := make([]float64, n)
	for at := range n {
		p, q := x.at[at], y.at[at]
		if p.top[0] == p.forced {
			ownA++
		}
		if q.top[0] == q.forced {
			ownB++
		}
		if p.top[0] == q.top[0] {
			agreed++
		} else {
			if parted < len(f.Differing) {
				d := f.Differing[parted]
				c.same(what+": where they differ", float64(d.Index), float64(at))
				c.margin(what+": the margin of the first there", d.MarginA, p.margin())
				c.margin(what+": the margin of the second there", d.MarginB, q.margin())
			}
			parted++
		}
		kl, restP, restQ := 0.0, 1.0, 1.0
		for _, id := range slices.Sorted(maps.Keys(p.p)) {
			other, both := q.p[id]
			if !both {
				continue
			}
			apart := math.Abs(p.p[id] - other)
			told, sum = told+1, sum+apart
			if apart > farthest {
				farthest, farthestAt = apart, at
			}
			if max(math.Exp(p.p[id]), math.Exp(other)) >= 0.01 {
				likely[at] = max(likely[at], apart)
			}
			kl += math.Exp(p.p[id]) * (p.p[id] - other)
			restP, restQ = restP-math.Exp(p.p[id]), restQ-math.Exp(other)
		}
		if restP > 1e-6 {
			kl += restP * math.Log(restP/max(restQ, 1e-6))
		}
		klSum, klMost = klSum+max(0, kl), max(klMost, kl)
	}
	c.same(what+": places where they differ", float64(len(f.Differing)), float64(parted))
	c.same(what+": places", float64(f.Positions), float64(n))
	c.same(what+": places where both say the same", float64(f.Agreed), float64(agreed))
	c.same(what+": share of them", f.Share, float64(agreed)/float64(n))
	c.same(what+": the first says the text", float64(f.OwnA), float64(ownA))
	c.same(what+": the second says the text", float64(f.OwnB), float64(ownB))
	if c.present(what+": log-probabilities of both", f.Distance != nil, told > 0); f.Distance == nil || told == 0 {
		return likely
	}
	d := f.Distance
	c.same(what+": log-probabilities of both", float64(d.Compared), float64(told))
	c.same(what+": the farthest distance", d.Max, farthest)
	c.same(what+": the place of the farthest distance", float64(d.MaxAt), float64(farthestAt))
	c.same(what+": the mean distance", d.Mean, sum/float64(told))
	c.same(what+": the farthest distance of likely tokens", d.MaxLikely, slices.Max(likely))
	c.same(what+": the mean divergence", d.KLMean, klSum/float64(n))
	c.same(what+": the farthest divergence", d.KLMax, klMost)
	return likely
}
