package memory

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/accuracy"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Prediction is what was foretold of a cell's memory before its first launch, held against what its launches took.
type Prediction struct {
	Source string            `json:"source,omitempty"` // what it was worked out from
	Setup  map[string]string `json:"setup,omitempty"`  // what was taken for granted
	Absent string            `json:"absent,omitempty"` // why nothing was foretold
	Parts  []Predicted       `json:"parts"`
	Notes  []string          `json:"notes"`
	// Recommendations say which component is off, by how much, and what most likely explains it.
	Recommendations []string `json:"recommendations"`
}

// Predicted is a component foretold and measured, in MiB. Errors are the forecast's: above zero where too much was
// foretold.
type Predicted struct {
	Name       string             `json:"name"`
	Title      string             `json:"title"`
	Low        *float64           `json:"predicted_low,omitempty"`
	Best       *float64           `json:"predicted,omitempty"`
	High       *float64           `json:"predicted_high,omitempty"`
	Method     string             `json:"predicted_method,omitempty"`
	Confidence string             `json:"predicted_confidence,omitempty"`
	DType      string             `json:"predicted_dtype,omitempty"`
	Measured   *float64           `json:"measured,omitempty"` // the median over launches
	Origin     record.Origin      `json:"origin,omitempty"`   // of what the run has, compared or not
	Interval   *stats.Interval    `json:"measured_interval,omitempty"`
	N          int                `json:"launches"`
	By         string             `json:"measured_method,omitempty"`
	Error      *float64           `json:"error_mib,omitempty"`
	Percent    *float64           `json:"error_percent,omitempty"` // of what was measured
	Within     *bool              `json:"within_range,omitempty"`
	Expected   *accuracy.Expected `json:"expected,omitempty"` // of such calculations in general
	AsExpected *bool              `json:"within_expected,omitempty"`
	Verdict    string             `json:"verdict"`
	Why        string             `json:"why,omitempty"` // why there is nothing to compare
}

// Verdicts of a component that was foretold.
const (
	WithinRange  = "within"
	TooMuch      = "foretold too much"
	TooLittle    = "foretold too little"
	NotMeasured  = "not measured"
	NotPredicted = "not foretold"
	sameByLogMiB = 0.02 // what is told to a hundredth of a MiB
)

// Held is a prediction held against what was measured.
func (c *Cell) Held(p record.Prediction) *Prediction {
	f := &Prediction{Source: p.Source, Setup: p.Setup, Absent: p.Absent, Parts: []Predicted{}, Notes: []string{},
		Recommendations: []string{}}
	f.Notes = append(f.Notes, p.Notes...)
	if p.Absent != "" || len(p.Parts) == 0 {
		if f.Absent == "" {
			f.Absent = "no part was foretold"
		}
		return f
	}
	otherwise := byOtherDefinitions(p)
	if len(otherwise) > 0 {
		f.Notes = append(f.Notes, "everything else and total were foretold by other definitions than are measured, and are not held against what was measured")
	}
	for _, row := range Components() {
		if slices.Contains(otherwise, row.Name) {
			continue
		}
		said, ok := p.Part(row.Name)
		measured := c.comparable(row.Name)
		// Of one device there is no overhead of several; the peak holds what there was before, which is foretold of
		// few.
		trivial := row.Name == figure.MultiGPUOverhead && (!measured.Known() || measured.Center() == 0) ||
			row.Name == figure.TotalMemory
		if !ok && (!measured.read() || trivial) {
			continue
		}
		held := hold(row.Name, said, ok, measured)
		if row.Name == figure.FrameworkOverhead && c.Parts != nil && len(c.Parts.Beyond) > 0 {
			held.Title = figure.Title(figure.BrowserShare) + " and " + held.Title
		}
		f.Parts = append(f.Parts, held)
	}
	f.Recommendations = append(f.Recommendations, c.recommend(f, p)...)
	return f
}

// comparable is what was measured of a component, where that is of what forecasts are of.
func (c *Cell) comparable(name string) Component {
	m := c.Parts.Component(name)
	ofWhole := name == figure.MemoryIncrease || name == figure.FrameworkOverhead || name == figure.TotalMemory
	if ofWhole && m.Known() &&
		c.Parts.Of == onGPUs {
		return Component{Figure: evidence.Figure{Name: name,
			Absent: "it was measured of the GPU's memory, and foretold of the host's"}}
	}
	return m
}

// byOtherDefinitions are components that mean another thing in a forecast than in a measurement. Forecasts of before
// both meant the same are known by a total as used.
func byOtherDefinitions(p record.Prediction) []string {
	if _, before := p.Part("total_used"); before {
		return []string{figure.FrameworkOverhead, figure.TotalMemory}
	}
	return nil
}

// hold sets what was foretold of a component against what was measured.
func hold(name string, said record.Predicted, reported bool, measured Component) Predicted {
	f := Predicted{Name: name, Title: figure.Title(name), Origin: measured.Origin, Verdict: NotPredicted}
	if reported {
		low, best, high := evidence.MiB(said.Low), evidence.MiB(said.Best), evidence.MiB(said.High)
		f.Low, f.Best, f.High, f.Method, f.Confidence, f.DType = &low, &best, &high, said.Method, said.Confidence,
			said.DType
		f.Verdict = NotMeasured
	}
	if e, ok := accuracy.Of(name); ok {
		f.Expected = &e
	} else if e, ok := accuracy.Of(figure.TotalMemory); ok && name == figure.MemoryIncrease {
		f.Expected = &e
	}
	switch {
	case measured.read():
		center := measured.Center()
		f.Measured, f.Interval, f.N, f.By = &center, measured.Interval, measured.N, measured.Method
	case measured.Known():
		f.Why = measured.From() + ": it proves nothing of a prediction"
	default:
		f.Why = measured.Absent
	}
	if f.Best != nil && f.Measured != nil {
		f.judge()
	}
	return f
}

// judge takes what is measured to be within a range where it is no farther outside than a log's last digit, or than a
// hundredth where the range is a single value.
func (f *Predicted) judge() {
	gap := *f.Best - *f.Measured
	off := stats.Round(gap, 6)
	f.Error = &off
	if percent := stats.Round(100*gap / *f.Measured, 6); *f.Measured > 0 && !math.IsInf(percent, 0) {
		f.Percent = &percent
	}
	tolerance := sameByLogMiB
	if *f.Low == *f.High {
		tolerance = max(tolerance, 0.01*math.Abs(*f.Measured))
	}
	within := *f.Measured >= *f.Low-tolerance && *f.Measured <= *f.High+tolerance
	f.Within = &within
	switch {
	case within:
		f.Verdict = WithinRange
	case off > 0:
		f.Verdict = TooMuch
	default:
		f.Verdict = TooLittle
	}
	if f.Expected != nil && f.Percent != nil {
		near := math.Abs(*f.Percent) <= f.Expected.Variance*(1+1e-9)
		f.AsExpected = &near
	}
}

// off tells whether a component deserves a word: not where the interval over launches reaches what was foretold.
func (f Predicted) off() bool {
	reaches := func(low, high float64) bool {
		return f.Interval != nil && f.Interval.Lo <= high && f.Interval.Hi >= low
	}
	switch {
	case f.Within == nil:
		return false
	case !*f.Within:
		return !reaches(*f.Low, *f.High)
	}
	return f.AsExpected != nil && !*f.AsExpected && f.Confidence == HighConfidence && !reaches(*f.Best, *f.Best)
}

// Part finds a component; false where it was neither foretold nor measured.
func (f *Prediction) Part(name string) (Predicted, bool) {
	if f != nil {
		for _, p := range f.Parts {
			if p.Name == name {
				return p, true
			}
		}
	}
	return Predicted{}, false
}

// recommend says what is off and why, as far as the record tells.
func (c *Cell) recommend(f *Prediction, p record.Prediction) []string {
	var out []string
	setup := c.otherwise(p)
	for _, x := range f.Parts {
		if !x.off() || x.Name == figure.TotalMemory &&
			slices.ContainsFunc(f.Parts, func(o Predicted) bool { return o.Name == figure.MemoryIncrease && o.off() }) {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s MiB were foretold and %s measured (%s): %s", x.Title,
			explain.Short(*x.Best),
			explain.Short(*x.Measured), errorWords(x), c.reason(f, x, setup)))
	}
	return out
}

func errorWords(x Predicted) string {
	if x.Percent == nil {
		return off(*x.Error) + " MiB"
	}
	return off(*x.Percent) + " %"
}

// off writes by how much a forecast was wrong; nothing has no sign.
func off(v float64) string {
	if math.Abs(v) < 0.05 {
		return "0.0"
	}
	return fmt.Sprintf("%+.1f", v)
}

// otherwise lists what the engine says of its set-up that was taken to be something else.
func (c *Cell) otherwise(p record.Prediction) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(p.Setup)) {
		is := c.Says(key)
		if key == "context" && is == "" && c.Spec.Model.Context > 0 {
			is = fmt.Sprint(c.Spec.Model.Context)
		}
		if is != "" && !sameNumbers(is, p.Setup[key]) {
			out = append(out, fmt.Sprintf("%s was %s, %s was foretold", strings.ReplaceAll(key, "_", " "), is,
				p.Setup[key]))
		}
	}
	return out
}

// reason is what most likely explains an error: a type of numbers, another difference of the set-up, else what such
// errors come from.
func (c *Cell) reason(f *Prediction, x Predicted, setup []string) string {
	actual := c.Parts.Component(x.Name).DType
	if x.DType != "" && actual != "" && !sameNumbers(actual, x.DType) {
		return fmt.Sprintf("%s was %s, %s was foretold", strings.SplitN(x.Title, ",", 2)[0], actual, x.DType)
	}
	if ofSetup := x.Name == figure.KVCache || x.Name == figure.Activations; ofSetup && len(setup) > 0 {
		return strings.Join(setup, "; ")
	}
	high := *x.Error > 0
	switch x.Name {
	case figure.ModelWeights:
		return "types or tensors are others than was foretold; with repacking, or copies on the way to a GPU, an engine holds some of them twice"
	case figure.KVCache:
		if high {
			return "the engine reserves for fewer tokens, or in a smaller type, than was foretold"
		}
		return "the engine reserves for more tokens (a context that is rounded up, or several slots), or in a larger type, than was foretold"
	case figure.Activations:
		return "it goes by how many tokens are computed at a time, and by how an engine's allocator shares buffers, which differs between versions"
	case figure.FrameworkOverhead:
		return c.leftOver(*x.Error)
	}
	if words, _ := c.untouchedWords(*x.Error); high && words != "" {
		return lessTouched + words
	}
	if worst, ok := f.worst(); ok {
		return "most of it comes from " + worst
	}
	if high {
		return "what was reserved did not all come into memory: it counts once it is touched"
	}
	return "something grew that was not foretold: copies during the load, caches, or another program's pages"
}

const lessTouched = "less came into memory than was foretold, of what was reserved: "

// leftOver explains an error of what is left by difference.
func (c *Cell) leftOver(off float64) string {
	if c.Parts.Component(figure.FrameworkOverhead).Words != "" {
		return "what is left by difference is negative, and so no size; the memory by component says why"
	}
	if c.Parts != nil && len(c.Parts.Beyond) > 0 {
		return "it was foretold by following the load; when garbage is collected, and what else the machine's browsers share, moves it"
	}
	const rule = "it is what is left by difference, with the errors of all other components in it, and was foretold by a rule of thumb"
	if words, _ := c.untouchedWords(off); off > 0 && words != "" {
		return lessTouched + words
	}
	return rule
}

// worst names the component whose error is largest, in MiB, of those that make up a sum.
func (f *Prediction) worst() (string, bool) {
	name, most := "", 0.0
	for _, row := range Components()[:6] {
		x, ok := f.Part(row.Name)
		if ok && x.Error != nil && math.Abs(*x.Error) > most {
			name, most = fmt.Sprintf("%s (%s MiB)", x.Title, off(*x.Error)), math.Abs(*x.Error)
		}
	}
	return name, name != ""
}
