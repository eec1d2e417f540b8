package growth

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/memory"
	"llmparity/internal/axis"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Sweep is cells that differ along one axis alone: the length of the prompt, the context, the number of clients. Memory
// per token over lengths is the slope of a line through the launches of all cells, which are independent; other axes
// have no line.
type Sweep struct {
	Axis    string    `json:"axis"`            // AxisPrompt, AxisContext …
	Names   []string  `json:"names,omitempty"` // values on an axis without numbers, by At
	Title   string    `json:"title"`
	Label   string    `json:"label"` // the engine, and in what else sweeps differ
	Engine  string    `json:"engine"`
	Cells   []int     `json:"cells"` // indexes, by position on the axis
	At      []float64 `json:"at"`    // positions of the cells
	Theory  *Theory   `json:"theory,omitempty"`
	Rates   []Rate    `json:"rates"`
	Verdict []string  `json:"verdict"`
}

// Member is a cell of sweeps: its memory, and what else they take of it.
type Member struct {
	*memory.Footprint
	Title       string             // the engine's name for people
	Environment record.Environment // of its run
	Growth      *Growth            // within its launches
}

// SettledPSS is the total PSS after the last request minus the baseline.
const SettledPSS = "settled_pss"

// Names of axes in results.
const (
	AxisPrompt  = "input_len"
	AxisContext = axis.Context
	AxisOutput  = "output_len"
	AxisClients = axis.Concurrency
	AxisBatch   = axis.BatchSize
)

// along is an axis with the cells' positions on it.
type along struct {
	*axis.Axis
	title  string
	of     func(*Member) float64 // NaN: unknown
	word   func(*Member) string  // the value on an axis without numbers; nil: it has numbers
	tokens bool                  // memory may grow along it by bytes per token
}

// lengths are the axes along which memory may grow by bytes per token. Lengths of prompts and contexts are those that
// the engine reports.
var lengths = []along{
	{Axis: axis.Named(axis.Input), title: "prompt tokens", tokens: true,
		of: func(c *Member) float64 { return c.Figure(figure.Prompt).Center() }},
	{Axis: axis.Named(axis.Context), title: "context", tokens: true,
		of: func(c *Member) float64 { return above0(c.Context()) }},
	{Axis: axis.Named(axis.Output), title: "requested tokens", tokens: true,
		of: func(c *Member) float64 { return above0(c.Spec.MaxTokens) }},
}

func above0(n int) float64 {
	if n <= 0 {
		return math.NaN()
	}
	return float64(n)
}

// alongs are the axes of sweeps: lengths, other axes of numbers, and the KV cache dtype.
func alongs(cells []*Member) []along {
	specs := make([]*record.Cell, len(cells))
	for i, c := range cells {
		specs[i] = &c.Spec
	}
	out := slices.Clone(lengths)
	for _, x := range axis.Of(specs...) {
		a := along{Axis: x, title: x.Title}
		switch {
		case slices.ContainsFunc(lengths, func(l along) bool { return l.Name == x.Name }):
			continue
		case x.Name == axis.KVDType:
			a.word = func(c *Member) string { return cmp.Or(c.Spec.KVDType, c.Policy("kv_dtype")) }
		case x.Number != nil:
			a.of = func(c *Member) float64 { return x.Number(&c.Spec) }
		default:
			continue
		}
		out = append(out, a)
	}
	return out
}

// Sweeps finds cells that differ along one axis alone, in the order of cells.
func Sweeps(cells []*Member) []Sweep {
	out := []Sweep{}
	for _, x := range alongs(cells) {
		var by evidence.Groups[string, int]
		for i, c := range cells {
			if len(c.Counted) > 0 && (x.word != nil || !math.IsNaN(x.of(c))) {
				by.Add(c.otherwise(x.Axis), i)
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

// otherwise identifies what the cells of a sweep along an axis have in common.
func (c *Member) otherwise(x *axis.Axis) string {
	words := []string{axis.Key(&c.Spec, func(o *axis.Axis) bool { return !follows(o, x) })}
	if x.Rest != nil {
		words = append(words, x.Rest(&c.Spec))
	}
	for _, r := range evidence.AllReported() {
		if r.Axis != x.Name {
			words = append(words, r.Value(&c.Setup))
		}
	}
	env := c.Environment
	return strings.Join(append(words, env.CPU, fmt.Sprint(env.Cores, env.MemoryB)), "\x00")
}

// follows reports whether the values of an axis follow from those of another: its own, those of which the other is a
// part, and texts of other lengths.
func follows(o, x *axis.Axis) bool {
	return o.Name == x.Name || o.Name == x.Part || o.Name == axis.Prompt && x.Name == axis.Input
}

func sweep(all []*Member, x along, cells []int) (Sweep, bool) {
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
	s := Sweep{Axis: x.ByName(), Title: x.title, Names: names, Engine: first.Spec.Engine, Cells: cells, Rates: []Rate{},
		Verdict: []string{}}
	for _, i := range cells {
		s.At = append(s.At, at(i))
	}
	if !x.tokens {
		return s, true
	}
	if first.Growth != nil && first.Spec.Traffic == nil { // several requests fill several caches
		s.Theory = first.Growth.Theory
	}
	for _, q := range sweptFigures(first) {
		s.rate(all, q)
	}
	s.judge()
	return s, true
}

// swept is a quantity of a cell, in MiB, whose slope over cells is computed.
type swept struct {
	name, of string
	get      func(*Member) evidence.Figure
}

func sweptFigures(first *Member) []swept {
	held := func(name string) func(*Member) evidence.Figure {
		return func(c *Member) evidence.Figure {
			if c.Breakdown == nil {
				return evidence.Figure{}
			}
			return evidence.Find(c.Breakdown.Measure, name)
		}
	}
	ours := func(name string) func(*Member) evidence.Figure {
		return func(c *Member) evidence.Figure { return c.Figure(name) }
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
				swept{"peak:" + p.Process, OfHeld, func(c *Member) evidence.Figure { return peakOf(c, p.Process) }})
		}
	}
	return out
}

// settled is the total PSS after the last request minus the launch's baseline, if it has one. Pages that a browser
// shares with other programs change both, and cancel out.
func settled(c *Member) evidence.Figure {
	if c.Breakdown == nil {
		return evidence.Figure{}
	}
	f, base := evidence.Find(c.Breakdown.Measure, figure.TotalPSS), c.Figure(figure.Baseline)
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
func peakOf(c *Member, process string) evidence.Figure {
	if c.Breakdown != nil {
		for _, p := range c.Breakdown.Peaks {
			if p.Process == process {
				f := evidence.Find(p.Phases, string(record.Measure))
				f.Title = process + " peak RSS"
				return f
			}
		}
	}
	return evidence.Figure{}
}

const sweepHow = "the median slope between all pairs of launches of different cells (Theil-Sen), with Sen's interval. " +
	"For each launch: "

// sharedHow is sweepHow for repetitions that share a launch.
const sharedHow = "the median slope between all pairs of repetitions of different cells (Theil-Sen), with Sen's interval; repetitions share a " +
	"launch, so the interval does not cover differences between launches. For each repetition: "

func (s *Sweep) rate(cells []*Member, q swept) {
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
			rate.inDType(cells[i].Footprint)
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
	rate.compareWith(s.Theory)
	rate.round()
	from, to := s.At[0], s.At[len(s.At)-1]
	rate.Fit = fitOver(from, line.Intercept+line.Slope*from, to, slope, s.Theory)
	s.Rates = append(s.Rates, rate)
}

// Flat reports whether the size of the KV cache does not depend on the prompt, because the context decides it.
func (s *Sweep) Flat() bool {
	return s.Axis == AxisPrompt &&
		slices.ContainsFunc(s.Rates, func(r Rate) bool { return r.Of == OfReserved && r.Center() == 0 })
}

// judge writes the verdict of each rate.
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

// sweepLabel is the engine, and in what else the sweep differs from others along the same axis.
func sweepLabel(all []Sweep, at int, cells []*Member) string {
	s := all[at]
	first, x := cells[s.Cells[0]], axis.Named(s.Axis)
	words := []string{first.Title}
	add := func(of func(*Member) string) {
		if word := of(first); word != "" && slices.ContainsFunc(all, func(o Sweep) bool {
			return o.Axis == s.Axis && o.Engine == s.Engine && of(cells[o.Cells[0]]) != word
		}) {
			words = append(words, word)
		}
	}
	for _, o := range axis.Of(&first.Spec) {
		if o.Part == "" && o.Name != axis.Engine && !follows(o, x) {
			add(func(c *Member) string { return o.In(&c.Spec) })
		}
	}
	for _, r := range evidence.AllReported() {
		if r.Word != nil && r.Axis != x.Name {
			add(func(c *Member) string { return r.Word(&c.Setup) })
		}
	}
	add(func(c *Member) string { return c.Environment.CPU })
	return strings.Join(words, ", ")
}
