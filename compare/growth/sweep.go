package growth

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Sweep is cells that differ in one thing alone: how long the prompt is, the context or the answer, how many requests
// come at once, the type of the KV cache's numbers. What memory grows by over lengths is told by one line through the
// launches of all, which are independent; over the others there is no line.
type Sweep struct {
	Axis    string    `json:"axis"`            // AxisPrompt, AxisContext …
	Names   []string  `json:"names,omitempty"` // of places on an axis that has no numbers, by At
	Title   string    `json:"title"`
	Label   string    `json:"label"` // the engine, and what else tells sweeps apart
	Engine  string    `json:"engine"`
	Cells   []int     `json:"cells"` // indexes, by where they are on the axis
	At      []float64 `json:"at"`    // of each cell
	Theory  *Theory   `json:"theory,omitempty"`
	Rates   []Rate    `json:"rates"`
	Verdict []string  `json:"verdict"`
}

// Cell is a cell with what it tells sweeps.
type Cell struct {
	*memory.Cell
	Environment record.Environment // of its run
	Growth      *Growth            // within its launches
}

// SettledPSS is the total PSS after the last request, less the baseline.
const SettledPSS = "settled_pss"

// Axes of sweeps.
const (
	AxisPrompt  = "input_len"
	AxisContext = "context"
	AxisOutput  = "output_len"
	AxisClients = "concurrency"
	AxisBatch   = "batch_size"
	AxisKVType  = "kv_cache_dtype"
)

// axis is what cells can differ in: a number of tokens, the same in all launches of a cell.
type axis struct {
	name, title string
	of          func(*Cell) float64 // above 0 where it is known
	word        func(*Cell) string  // of one without numbers
	tokens      bool                // memory may grow along it by so many bytes a token
}

var axes = []axis{
	{name: AxisPrompt, title: "prompt tokens", tokens: true,
		of: func(c *Cell) float64 { return c.Figure(figure.Prompt).Center() }},
	{name: AxisContext, title: "context", tokens: true,
		of: func(c *Cell) float64 { return float64(c.Context()) }},
	{name: AxisOutput, title: "requested tokens", tokens: true,
		of: func(c *Cell) float64 { return float64(c.Spec.MaxTokens) }},
	{name: AxisClients, title: "concurrent clients",
		of: func(c *Cell) float64 { return float64(c.AtOnce(record.ClosedLoop)) }},
	{name: AxisBatch, title: "requests in a batch",
		of: func(c *Cell) float64 { return float64(c.AtOnce(record.Batch)) }},
	{name: AxisKVType, title: "KV cache dtype",
		word: func(c *Cell) string { return cmp.Or(c.Spec.KVDType, c.Policy("kv_dtype")) }},
}

// Sweeps finds the cells that belong together, in the order in which they come.
func Sweeps(cells []*Cell) []Sweep {
	out := []Sweep{}
	for _, x := range axes {
		var by evidence.Groups[string, int]
		for i, c := range cells {
			if len(c.Counted) > 0 && (x.word != nil || x.of(c) > 0) {
				by.Add(c.otherwise(x.name), i)
			}
		}
		for _, of := range by.All() {
			if s, ok := sweep(cells, x, of); ok {
				out = append(out, s)
			}
		}
	}
	for i := range out {
		out[i].Label = sweepLabel(out, i, cells)
	}
	return out
}

// otherwise is what cells of a sweep have in common.
func (c *Cell) otherwise(but string) string {
	m, env := c.Spec.Model, c.Environment
	device := ""
	if c.Device != nil {
		device = string(c.Device.Class) + " " + c.Device.Name
	}
	words := []string{c.Spec.Engine, m.Name, m.SHA256, c.Isolation(), c.Spec.PromptCache,
		fmt.Sprint(c.Spec.Temperature), c.Spec.Start, c.Version(), c.Library(), c.Policy("weights_dtype"), c.Threads(),
		c.Worker(), c.Set(), c.Browser(), device, env.CPU, fmt.Sprint(env.Cores, env.MemoryB)}
	for _, w := range []struct{ axis, word string }{
		{AxisContext, fmt.Sprint(c.Context())}, {AxisPrompt, c.Spec.Prompt}, {AxisOutput, fmt.Sprint(c.Spec.MaxTokens)},
		{AxisKVType, c.Spec.KVDType + " " + c.Policy("kv_dtype")},
	} {
		if w.axis != but {
			words = append(words, w.word)
		}
	}
	return strings.Join(append(words, trafficKey(c.Spec.Traffic, loops[but])), "\x00")
}

// loops are those whose number of requests at once is an axis.
var loops = map[string]string{AxisClients: record.ClosedLoop, AxisBatch: record.Batch}

// trafficKey is a traffic as text. If but names a loop, the text lacks the number of requests at once and what depends
// on that number, and a single request counts as traffic of that loop.
func trafficKey(t *record.Traffic, but string) string {
	if but != "" {
		other := record.Traffic{Loop: but}
		if t != nil {
			other = *t
		}
		other.Concurrency, other.Requests, other.Seed = 0, 0, 0
		t = &other
	}
	text, _ := json.Marshal(t) // plain data
	return string(text)
}

func sweep(all []*Cell, x axis, cells []int) (Sweep, bool) {
	var names []string
	at := func(i int) float64 { return x.of(all[i]) }
	if x.word != nil {
		for _, i := range cells {
			names = explain.AppendNew(names, x.word(all[i]))
		}
		slices.Sort(names)
		at = func(i int) float64 { return float64(slices.Index(names, x.word(all[i]))) }
	}
	slices.SortStableFunc(cells, func(a, b int) int { return cmp.Compare(at(a), at(b)) })
	if len(cells) < 2 || at(cells[0]) == at(cells[len(cells)-1]) {
		return Sweep{}, false
	}
	first := all[cells[0]]
	s := Sweep{Axis: x.name, Title: x.title, Names: names, Engine: first.Spec.Engine, Cells: cells, Rates: []Rate{},
		Verdict: []string{}}
	for _, i := range cells {
		s.At = append(s.At, at(i))
	}
	if !x.tokens {
		return s, true
	}
	if first.Growth != nil && first.Spec.Traffic == nil { // of several requests as many caches grow
		s.Theory = first.Growth.Theory
	}
	for _, q := range sweptFigures(first) {
		s.rate(all, q)
	}
	s.judge()
	return s, true
}

// swept is a quantity of a cell, in MiB, that is followed over cells.
type swept struct {
	name, of string
	get      func(*Cell) evidence.Figure
}

func sweptFigures(first *Cell) []swept {
	held := func(name string) func(*Cell) evidence.Figure {
		return func(c *Cell) evidence.Figure {
			if c.Breakdown == nil {
				return evidence.Figure{}
			}
			return evidence.Held(c.Breakdown.Measure, name)
		}
	}
	ours := func(name string) func(*Cell) evidence.Figure {
		return func(c *Cell) evidence.Figure { return c.Figure(name) }
	}
	out := []swept{
		{figure.KVReserved, OfReserved, held(figure.KVReserved)},
		{figure.Ledger, OfHeld, held(figure.Ledger)},
		{SettledPSS, OfHeld, settled},
		{figure.PeakPSS, OfHeld, ours(figure.PeakPSS)},
		{figure.PeakRSS, OfHeld, ours(figure.PeakRSS)},
	}
	if first.Breakdown == nil || len(first.Breakdown.Peaks) < 2 {
		return out
	}
	for _, p := range first.Breakdown.Peaks {
		if p.Process == "renderer" || p.Process == "gpu-process" {
			out = append(out,
				swept{"peak:" + p.Process, OfHeld, func(c *Cell) evidence.Figure { return peakOf(c, p.Process) }})
		}
	}
	return out
}

// settled is the total PSS after the last request less the launch's own baseline, where it has one. What other programs
// share of a browser's pages moves both, and falls out of the difference.
func settled(c *Cell) evidence.Figure {
	if c.Breakdown == nil {
		return evidence.Figure{}
	}
	f, base := evidence.Held(c.Breakdown.Measure, figure.TotalPSS), c.Figure(figure.Baseline)
	f.Title += " after the last request"
	if base.Known() {
		f.Title += ", minus the baseline"
		f.How += " after the last request, minus the median in the baseline phase"
	}
	f.Values = slices.Clone(f.Values)
	for i, v := range f.Values {
		if b := base.Value(v.Attempt); !math.IsNaN(b) {
			f.Values[i].Value -= b
		}
	}
	return f
}

// peakOf is a process's highest RSS while it was measured.
func peakOf(c *Cell, process string) evidence.Figure {
	if c.Breakdown != nil {
		for _, p := range c.Breakdown.Peaks {
			if p.Process == process {
				f := evidence.Held(p.Phases, string(record.Measure))
				f.Title = process + " peak RSS"
				return f
			}
		}
	}
	return evidence.Figure{}
}

const sweepHow = "the median slope between all pairs of launches of different cells (Theil-Sen), with Sen's interval. " +
	"For each launch: "

// sharedHow is that of what went on in one launch.
const sharedHow = "the median slope between all pairs of repetitions of different cells (Theil-Sen), with Sen's interval; repetitions share a " +
	"launch, so the interval does not cover differences between launches. For each repetition: "

func (s *Sweep) rate(cells []*Cell, q swept) {
	rate := Rate{Of: q.of}
	var points []stats.Point
	how := sweepHow
	if cells[s.Cells[0]].Repeated() != "launch" {
		how = sharedHow
	}
	for n, i := range s.Cells {
		f := q.get(cells[i])
		if !f.Known() {
			continue
		}
		rate.Figure = evidence.Figure{Name: q.name, Title: f.Title, Unit: "bytes/token", Origin: f.Origin,
			Method: f.Method, Blind: f.Blind, How: how + f.How}
		if q.of == OfReserved {
			rate.Title = inDType(f.Title, cells[i].Cell)
		}
		for _, v := range f.Values {
			rate.Points = append(rate.Points, GrowthPoint{i, v.Attempt, GrowthAt{s.At[n], v.Value}})
			points = append(points, stats.Point{X: s.At[n], Y: v.Value})
		}
	}
	line, ok := stats.LineThrough(points)
	if !ok {
		return
	}
	slope := stats.Round(line.Slope*record.MiB, 6)
	rate.Values, rate.N, rate.Median = []evidence.Value{}, len(points), &slope
	if math.IsNaN(line.Lo) {
		rate.Note = evidence.TooFewRuns
	} else {
		rate.Interval = &stats.Interval{Lo: stats.Round(line.Lo*record.MiB, 6), Hi: stats.Round(line.Hi*record.MiB, 6),
			Confidence: stats.Confidence}
	}
	if line.Distinct == 2 {
		rate.How += ". With two lengths, linearity cannot be checked"
	}
	rate.hold(s.Theory)
	rate.round()
	from, to := s.At[0], s.At[len(s.At)-1]
	rate.Fit = fitOver(from, line.Intercept+line.Slope*from, to, slope, s.Theory)
	s.Rates = append(s.Rates, rate)
}

// Flat reports whether the prompts' lengths leave the KV cache as it is, because the context decides its size.
func (s *Sweep) Flat() bool {
	return s.Axis == AxisPrompt &&
		slices.ContainsFunc(s.Rates, func(r Rate) bool { return r.Of == OfReserved && r.Center() == 0 })
}

// judge says in words what each rate comes to.
func (s *Sweep) judge() {
	flat := s.Flat()
	for i := range s.Rates {
		r := &s.Rates[i]
		r.judge(s.Theory, flat)
		if r.Of == OfReserved && flat {
			r.Verdict = "flat, because the context decides how much is reserved, not the prompt"
		}
		s.Verdict = append(s.Verdict, fmt.Sprintf("%s: %s bytes/token: %s", r.Title, rateWords(r.Center()), r.Verdict))
	}
}

// sweepLabel is the engine, with as much more as tells it from other sweeps of the same axis.
func sweepLabel(all []Sweep, at int, cells []*Cell) string {
	s := all[at]
	c := cells[s.Cells[0]]
	words := []string{s.Engine}
	for _, part := range []struct {
		but  []string // axes that say it by themselves
		word func(*Cell) string
	}{
		{nil, func(c *Cell) string { return c.Spec.Model.Name }},
		{[]string{AxisContext}, func(c *Cell) string { return fmt.Sprintf("context %d", c.Context()) }},
		{[]string{AxisOutput}, func(c *Cell) string { return fmt.Sprintf("%d tokens", c.Spec.MaxTokens) }},
		{[]string{AxisClients, AxisBatch}, (*Cell).Traffic},
		{[]string{AxisPrompt}, (*Cell).Prompt},
		{nil, (*Cell).Start}, {nil, (*Cell).Isolation}, {nil, (*Cell).Set},
		{nil, (*Cell).ShortVersion}, {nil, (*Cell).ShortLibrary},
		{[]string{AxisKVType}, (*Cell).DTypes},
		{nil, (*Cell).Threads}, {nil, (*Cell).Worker}, {nil, (*Cell).Browser}, {nil, (*Cell).On},
		{nil, func(c *Cell) string { return c.Environment.CPU }},
	} {
		if !slices.Contains(part.but, s.Axis) && slices.ContainsFunc(all, func(o Sweep) bool {
			return o.Axis == s.Axis && o.Engine == s.Engine && part.word(cells[o.Cells[0]]) != part.word(c)
		}) {
			words = append(words, part.word(c))
		}
	}
	return strings.Join(words, ", ")
}
