// Package evidence has what all parts of a comparison share: a figure over a cell's launches, the launches of attempts,
// and the readings of a phase. A figure has values, median, interval, origin and warnings.
//
// It does not know what a figure means: internal/figure has names, units and definitions, and other packages compute
// the values.
package evidence

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"llmparity/compare/explain"
	"llmparity/internal/figure"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Find finds a figure in a list; an absent one if there is none.
func Find(list []Figure, name string) Figure {
	if at := slices.IndexFunc(list, func(f Figure) bool { return f.Name == name }); at >= 0 {
		return list[at]
	}
	return Figure{Name: name, Absent: "not measured"}
}

// Exact adds a launch's value unrounded, so that bytes in MiB still add up.
func (f *Figure) Exact(attempt int, v float64) {
	if !math.IsNaN(v) {
		f.Values = append(f.Values, Value{attempt, v})
	}
}

// Summarised fills in what follows from the figures' values.
func Summarised(figures []Figure) []Figure {
	for i := range figures {
		figures[i].Summarise()
	}
	return figures
}

// PerLaunch has one value a launch: repetitions in one launch are not independent.
func (f Figure) PerLaunch(counted []*record.Attempt) []float64 {
	launch := map[int]int{}
	for _, a := range counted {
		launch[a.ID] = a.Launch().ID
	}
	var by Groups[int, float64]
	for _, v := range f.Values {
		by.Add(launch[v.Attempt], v.Value)
	}
	var out []float64
	for _, values := range by.All() {
		out = append(out, stats.Median(values))
	}
	return out
}

// ByRepetition has its values by the number of the repetition.
func (f Figure) ByRepetition(counted []*record.Attempt) map[int]float64 {
	out := map[int]float64{}
	for _, v := range f.Values {
		if at := slices.IndexFunc(counted, func(a *record.Attempt) bool { return a.ID == v.Attempt }); at >= 0 {
			out[counted[at].Repetition] = v.Value
		}
	}
	return out
}

// TooFewRuns is the note of a missing interval that needs more launches.
const TooFewRuns = "too few launches"

// Figure is one quantity of a cell over its counted launches.
type Figure struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit"`
	// Reported marks figures that the engine reports; llmparity did not measure them.
	Reported bool `json:"reported,omitempty"`
	// Beside is the measured figure that a reported one corresponds to.
	Beside string  `json:"beside,omitempty"`
	Values []Value `json:"values"`
	N      int     `json:"n"`
	// Median is nil without a value.
	Median *float64 `json:"median,omitempty"`
	// Interval is nil if Note says why there is none.
	Interval *stats.Interval `json:"interval"`
	Note     string          `json:"interval_note,omitempty"`
	// Meaningless marks a perplexity that says nothing about the quality of a model.
	Meaningless bool `json:"meaningless,omitempty"`
	// Absent says why there is no value.
	Absent string `json:"absent,omitempty"`
	Lacks  Lack   `json:"-"`
	How    string `json:"how"` // how it was obtained and what it misses
	// Origin is empty without a value.
	Origin record.Origin `json:"origin,omitempty"`
	// Method names the source of the values, and Blind what it misses.
	Method string `json:"method,omitempty"`
	Blind  string `json:"blind,omitempty"`
	// Warnings are about the launches: outliers, a trend, noise.
	Warnings []record.Warning `json:"warnings,omitempty"`
}

// Lack is the code of a reason in Figure.Absent; 0: a reason that no code depends on.
type Lack int

// The codes.
const (
	NoProcess Lack = iota + 1 // the engine had no process before the load
	Refused                   // the cell was
)

// Value is a figure of one launch.
type Value struct {
	Attempt int     `json:"attempt"`
	Value   float64 `json:"value"`
}

// Known reports whether there is a value.
func (f Figure) Known() bool { return f.Median != nil }

// Marked reports whether tables mark the figure: a warning is about its launches. A busy machine is a warning of the
// run, and would mark every time.
func (f *Figure) Marked() bool {
	return slices.ContainsFunc(f.Warnings, func(w record.Warning) bool { return w.Code != explain.BusyMachine.Code })
}

// Center is the median; NaN without a value.
func (f Figure) Center() float64 {
	if f.Median == nil {
		return math.NaN()
	}
	return *f.Median
}

// Lopsided is the half-width of an interval above which its ends are shown: ± would reach below zero, or hide that one
// side is much wider.
const Lopsided = 0.2

// HalfWidth is the wider side of the interval as a share of the median; false without one.
func (f Figure) HalfWidth() (float64, bool) {
	if !f.Known() || f.Interval == nil || f.Center() == 0 {
		return 0, false
	}
	return max(f.Interval.Hi-f.Center(), f.Center()-f.Interval.Lo) / math.Abs(f.Center()), true
}

// Add adds a launch's value. NaN, infinities and negative times are left out.
func (f *Figure) Add(attempt int, v float64) {
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
	case v < 0 && f.Unit == "ms":
		f.Warnings = append(f.Warnings, explain.ClockBackward.With(attempt))
	default:
		f.Values = append(f.Values, Value{attempt, stats.Round(v, 6)})
	}
}

// Summarise fills in what follows from the values.
func (f *Figure) Summarise() {
	f.N = len(f.Values)
	if f.Values == nil {
		f.Values = []Value{}
	}
	if f.N == 0 {
		f.Absent = cmp.Or(f.Absent, "not measured")
		return
	}
	f.Absent, f.Lacks = "", 0
	if f.Method == "" && f.TimeOrRate() {
		f.Method = ByClock
	}
	f.Origin = f.origin()
	f.Median = new(stats.Median(f.Numbers()))
	if f.Arithmetic() {
		f.Note = string(f.Origin)
		return
	}
	if f.Interval = stats.MedianInterval(f.Numbers(), stats.Confidence); f.Interval == nil {
		f.Note = TooFewRuns
		return
	}
	f.Interval.Confidence = stats.Round(f.Interval.Confidence, 6)
}

// Count writes the median of a number of tokens.
func (f Figure) Count() string { return strconv.FormatFloat(f.Center(), 'f', -1, 64) }

// Numbers are the values without their launches.
func (f Figure) Numbers() []float64 {
	out := make([]float64, len(f.Values))
	for i, v := range f.Values {
		out[i] = v.Value
	}
	return out
}

// TimeOrRate reports whether other programs on the machine affect the figure.
func (f *Figure) TimeOrRate() bool {
	return slices.Contains([]string{"ms", "µs", "tokens/s", "requests/s"}, f.Unit)
}

// Widen widens the interval if the run checked it several times.
func (f *Figure) Widen(s record.Stop) {
	if f.N == 0 {
		return
	}
	f.Interval, f.Note = nil, TooFewRuns
	f.How += fmt.Sprintf("; launches were added until %s was precise enough, checked up to %d times: a %s%% interval, so that it "+
		"holds in %s%% of cases", s.Figure, s.Looks, explain.Percent(s.Confidence), explain.Percent(s.Level))
	if of := stats.MedianInterval(f.Numbers(), s.Confidence); of != nil {
		f.Interval, f.Note = of, ""
		of.Confidence = stats.Round(max(s.Level, 1-float64(s.Looks)*(1-of.Confidence)), 6)
	}
}

// New is a figure of the table, without values.
func New(name string) Figure {
	r := figure.New(name)
	return Figure{Name: r.Name, Title: r.Title, Unit: r.Unit, How: r.How, Absent: r.Absent}
}

// Over adds a value of each attempt.
func (f Figure) Over(attempts []*record.Attempt, of func(*record.Attempt) float64) Figure {
	for _, a := range attempts {
		f.Add(a.ID, of(a))
	}
	return f
}

// PerRequest takes the median over a launch's requests, which are not independent.
func (f Figure) PerRequest(attempts []*record.Attempt, of func(*record.Request) float64) Figure {
	return f.Over(attempts, func(a *record.Attempt) float64 { return figure.OverRequests(of, a.Measured()) })
}

// Value finds a launch's value; NaN without one.
func (f Figure) Value(launch int) float64 {
	if at := slices.IndexFunc(f.Values, func(v Value) bool { return v.Attempt == launch }); at >= 0 {
		return f.Values[at].Value
	}
	return math.NaN()
}

// EngineLog is the method of sizes in an engine's log; EngineTensors that of the sizes of its tensors, as it reports
// them; AskedPS that of Ollama's answer to /api/ps.
const (
	EngineLog     = "engine_log"
	EngineTensors = "engine_tensors"
	AskedPS       = "api_ps"
)

// HowTensors says how a figure with the method EngineTensors is known.
const HowTensors = "bytes of the engine's tensors, as it reports them after the load and after each generation"

// Methods of a component beside those of sources.
const (
	ByTensors    = "tensors"    // sizes of the tensors in the model's file
	ByFormula    = "formula"    // arithmetic from the engine's settings
	ByDifference = "difference" // the rest of the whole
)

// Methods of figures that come from no source of the record.
const (
	ByClock  = "clock"
	ByTokens = "tokens_by_engine" // tokens or their number, as the engine reports them
	// ByLogProbs is for log-probabilities of a given text, as the engine reports them.
	ByLogProbs = "log_probabilities"
)

// origin follows from the method. The filled part of a KV cache is always calculated: tokens × bytes per token.
func (f *Figure) origin() record.Origin {
	switch {
	case f.Name == figure.KVUsed, f.Name == figure.KVCacheUsed:
		return record.OriginCalculated
	case f.Reported:
		return record.OriginReported
	}
	switch f.Method {
	case ByTensors:
		return record.OriginFileSize
	case ByFormula, ByDifference:
		return record.OriginCalculated
	case EngineLog, EngineTensors, AskedPS, ServerMethod, ByTokens:
		return record.OriginReported
	}
	return record.OriginMeasured
}

// Arithmetic reports whether a figure was calculated and has no interval.
func (f *Figure) Arithmetic() bool {
	return f.Origin == record.OriginFileSize || f.Origin == record.OriginCalculated && f.Method != ByDifference
}

// From is the origin with the method, for people; empty without a value.
func (f Figure) From() string {
	words := string(f.Origin)
	if f.Origin == record.OriginReported {
		words += " by the engine"
	}
	switch {
	case words == "", f.Method == "", f.Origin == record.OriginFileSize, f.Name == figure.KVUsed,
		f.Name == figure.KVCacheUsed:
		return words
	}
	return words + " (" + f.Method + ")"
}

// ServerMethod is that of figures which a server reports while it works.
const ServerMethod = "server_metrics"

const (
	// farOut is how many robust standard deviations (1.4826 times the median absolute deviation) an outlier is from the
	// median. Of ten normal values the deviation is uncertain: with 5, 1 series in 20 has an outlier; with 8, fewer
	// than 1 in 100.
	farOut = 8
	// trendAlpha is stricter than alpha, because every figure of every cell is tested.
	trendAlpha = 0.01
	// noisyShare is the robust standard deviation, as a share of the median, above which launches are noisy.
	noisyShare = 0.10
	// mentioned is the share of the median below which outliers and trends are ignored.
	mentioned = 0.02
)

// watch warns of outliers, drift and noise, if there are enough launches for an interval.
func (f *Figure) watch() {
	if f.N < stats.MinRuns {
		return
	}
	warn := func(r explain.Remark, args ...any) { f.Warnings = append(f.Warnings, r.With(args...)) }
	values, center := f.Numbers(), math.Abs(f.Center())
	deviation := stats.RobustDeviation(values)
	far, farthest := 0, 0
	for n, v := range values {
		off := math.Abs(v - f.Center())
		if off > farOut*deviation && off > mentioned*center {
			if far++; off > math.Abs(values[farthest]-f.Center()) || far == 1 {
				farthest = n
			}
		}
	}
	if far > 0 {
		warn(explain.Outliers, far, f.N, explain.Plural(far, "is", "are"), explain.WithUnit(values[farthest], f.Unit),
			farthest+1, f.N)
	}
	if slope, p := stats.Drift(values); p <= trendAlpha && math.Abs(slope)*float64(f.N-1) > mentioned*center {
		warn(explain.Trend, slope, f.Unit, p)
	}
	if center > 0 && deviation > noisyShare*center {
		warn(explain.WideInterval, 100*deviation/center)
	}
}

// Watch adds warnings to a cell's figures, except to counts of tokens; busy says what else used the machine.
func Watch(figures []Figure, busy string) {
	for i := range figures {
		f := &figures[i]
		if f.Name != figure.Tokens && f.Name != figure.Prompt && f.Name != figure.Cached {
			f.watch()
		}
		if busy != "" && f.TimeOrRate() && f.Known() {
			f.Warnings = append(f.Warnings, record.Warning{Code: explain.BusyMachine.Code, Text: busy})
		}
	}
}

// Warning is a warning or a note, and where it belongs.
type Warning struct {
	record.Warning
	Where string `json:"where"`
	// RecordCode is the more detailed code in the record, if it differs.
	RecordCode string `json:"record_code,omitempty"`

	Run  int `json:"-"` // the run that it is about, from 1; 0: it is about none as a whole
	Cell int `json:"-"` // the cell, or a launch of it, from 1; 0: it is about no single one
}
