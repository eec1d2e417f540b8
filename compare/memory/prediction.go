package memory

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/compare/explain"
	"llmparity/internal/dtype"
	"llmparity/internal/figure"
	"llmparity/internal/predict/accuracy"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// Prediction is a cell's memory as predicted before its first launch, compared with what was measured.
type Prediction struct {
	Source string            `json:"source,omitempty"` // what it is calculated from
	Setup  map[string]string `json:"setup,omitempty"`  // what was assumed
	Absent string            `json:"absent,omitempty"` // why there is no prediction
	Parts  []Predicted       `json:"parts"`
	Notes  []string          `json:"notes"`
	// Recommendations say which component is off, by how much, and the likely cause.
	Recommendations []string `json:"recommendations"`
}

// Predicted is a component as predicted and as measured, in MiB. Errors are positive if the prediction is too high.
type Predicted struct {
	Name       string             `json:"name"`
	Title      string             `json:"title"`
	Low        *float64           `json:"predicted_low,omitempty"`
	Best       *float64           `json:"predicted,omitempty"`
	High       *float64           `json:"predicted_high,omitempty"`
	Method     string             `json:"predicted_method,omitempty"`
	Confidence string             `json:"predicted_confidence,omitempty"`
	DType      string             `json:"predicted_dtype,omitempty"`
	Measured   *float64           `json:"measured,omitempty"` // in the launch whose parts are shown
	Origin     record.Origin      `json:"origin,omitempty"`   // of the run's value, compared or not
	Interval   *stats.Interval    `json:"measured_interval,omitempty"`
	N          int                `json:"launches"`
	By         string             `json:"measured_method,omitempty"`
	Error      *float64           `json:"error_mib,omitempty"`
	Percent    *float64           `json:"error_percent,omitempty"` // of what was measured
	Within     *bool              `json:"within_range,omitempty"`
	Expected   *accuracy.Expected `json:"expected,omitempty"` // usual accuracy of such calculations
	AsExpected *bool              `json:"within_expected,omitempty"`
	Verdict    string             `json:"verdict"`
	Why        string             `json:"why,omitempty"` // why there is nothing to compare
}

// Verdicts on a predicted component.
const (
	WithinRange  = "within"
	TooMuch      = "predicted too much"
	TooLittle    = "predicted too little"
	NotMeasured  = "not measured"
	NotPredicted = "not predicted"
	sameByLogMiB = 0.02 // logs round to a hundredth of a MiB
)

// ComparePrediction compares a prediction with what was measured.
func (c *Footprint) ComparePrediction(p record.Prediction) *Prediction {
	f := &Prediction{Source: p.Source, Setup: p.Setup, Absent: p.Absent, Parts: []Predicted{}, Notes: []string{},
		Recommendations: []string{}}
	f.Notes = append(f.Notes, p.Notes...)
	if p.Absent != "" || len(p.Parts) == 0 {
		f.Absent = cmp.Or(f.Absent, "no component was predicted")
		return f
	}
	for _, row := range Components() {
		said, ok := p.Part(row.Name)
		measured := c.comparable(row.Name)
		// Few predictions have the total, which includes the baseline.
		trivial := row.Name == figure.MultiGPUOverhead && (!measured.Known() || measured.Center() == 0) ||
			row.Name == figure.TotalMemory || row.Name == figure.HostParts
		if !ok && (!measured.read() || trivial) {
			continue
		}
		held := hold(row.Name, said, ok, measured)
		if row.Name == figure.FrameworkOverhead && c.Parts != nil && len(c.Parts.Beyond) > 0 {
			held.Title = figure.Title(figure.BrowserShare) + " and " + held.Title
		}
		f.Parts = append(f.Parts, held)
	}
	c.recommend(f, p)
	return f
}

// comparable is a measured component, if predictions are about the same memory.
func (c *Footprint) comparable(name string) Component {
	m := c.Parts.Component(name)
	ofWhole := name == figure.MemoryIncrease || name == figure.FrameworkOverhead || name == figure.TotalMemory
	if ofWhole && m.Known() && c.Parts.Of == onGPUs {
		m = Component{Figure: evidence.Figure{Name: name, Absent: "measured in GPU memory, predicted for host memory"}}
	}
	return m
}

// hold compares the prediction of a component with its measurement.
func hold(name string, said record.Predicted, reported bool, measured Component) Predicted {
	f := Predicted{Name: name, Title: figure.Title(name), Origin: measured.Origin, Verdict: NotPredicted}
	if reported {
		mebi := func(bytes int64) *float64 { return new(evidence.Mebi(float64(bytes))) }
		f.Low, f.Best, f.High = mebi(said.Low), mebi(said.Best), mebi(said.High)
		f.Method, f.Confidence, f.DType = said.Method, said.Confidence, said.DType
		f.Verdict = NotMeasured
	}
	usual, ok := accuracy.Of(name)
	if name == figure.MemoryIncrease && !ok {
		usual, ok = accuracy.Of(figure.TotalMemory)
	}
	if ok {
		f.Expected = &usual
	}
	switch {
	case measured.read() && measured.OfLaunch != nil:
		f.Measured, f.Interval, f.N, f.By = new(*measured.OfLaunch), measured.Interval, measured.N, measured.Method
	case measured.read():
		f.Why = "not read in the launch that is closest to the median"
	case measured.Known():
		f.Why = measured.From() + ", so the value cannot confirm a prediction"
	default:
		f.Why = measured.Absent
	}
	if f.Best != nil && f.Measured != nil {
		f.judge()
	}
	return f
}

// judge allows for the last digit of a log, and for 1% if the predicted range is a single value.
func (f *Predicted) judge() {
	gap := *f.Best - *f.Measured
	f.Error = new(stats.Round(gap, 6))
	if percent := stats.Round(100*gap / *f.Measured, 6); *f.Measured > 0 && !math.IsInf(percent, 0) {
		f.Percent = &percent
	}
	tolerance := sameByLogMiB
	if *f.Low == *f.High {
		tolerance = max(tolerance, 0.01*math.Abs(*f.Measured))
	}
	f.Within = new(*f.Measured >= *f.Low-tolerance && *f.Measured <= *f.High+tolerance)
	switch {
	case *f.Within:
		f.Verdict = WithinRange
	case *f.Error > 0:
		f.Verdict = TooMuch
	default:
		f.Verdict = TooLittle
	}
	if f.Expected != nil && f.Percent != nil {
		f.AsExpected = new(math.Abs(*f.Percent) <= f.Expected.Variance*(1+1e-9))
	}
}

// off reports whether a prediction is wrong beyond the interval over launches.
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

// Part finds a component; false if it was neither predicted nor measured.
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

// recommend says which predictions are off, and the likely cause.
func (c *Footprint) recommend(f *Prediction, p record.Prediction) {
	setup := c.otherwise(p)
	for _, x := range f.Parts {
		if !x.off() || x.Name == figure.TotalMemory &&
			slices.ContainsFunc(f.Parts, func(o Predicted) bool { return o.Name == figure.MemoryIncrease && o.off() }) {
			continue
		}
		by := off(*x.Error) + " MiB"
		if x.Percent != nil {
			by = off(*x.Percent) + "%"
		}
		f.Recommendations = append(f.Recommendations, fmt.Sprintf("%s: %s MiB predicted, %s measured (%s): %s", x.Title,
			explain.Short(*x.Best), explain.Short(*x.Measured), by, c.reason(f, x, setup)))
	}
}

// off writes an error; zero has no sign.
func off(v float64) string {
	if math.Abs(v) < 0.05 {
		return "0.0"
	}
	return fmt.Sprintf("%+.1f", v)
}

// otherwise lists settings that the engine reports and that differ from those assumed.
func (c *Footprint) otherwise(p record.Prediction) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(p.Setup)) {
		is := c.Says(key)
		if key == "context" && is == "" && c.Spec.Model.Context > 0 {
			is = fmt.Sprint(c.Spec.Model.Context)
		}
		if is != "" && dtype.Canonical(is) != dtype.Canonical(p.Setup[key]) {
			out = append(out, fmt.Sprintf("%s was %s, not %s as assumed", strings.ReplaceAll(key, "_", " "), is,
				p.Setup[key]))
		}
	}
	return out
}

// reason is the likely cause of an error: a dtype, another setting, else the usual cause.
func (c *Footprint) reason(f *Prediction, x Predicted, setup []string) string {
	actual := c.Parts.Component(x.Name).DType
	if x.DType != "" && actual != "" && dtype.Canonical(actual) != dtype.Canonical(x.DType) {
		return fmt.Sprintf("%s was %s, not %s as assumed", figure.Noun(x.Name), actual, x.DType)
	}
	if ofSetup := x.Name == figure.KVCache || x.Name == figure.Activations; ofSetup && len(setup) > 0 {
		return strings.Join(setup, "; ")
	}
	high := *x.Error > 0
	for _, usual := range usualReasons {
		if usual.name == x.Name && (usual.high || !high) {
			return usual.words
		}
	}
	switch worst, ok := f.worst(); {
	case x.Name == figure.FrameworkOverhead && c.Parts.Component(x.Name).Words != "":
		return "the measured difference is negative; see memory by component"
	case x.Name == figure.FrameworkOverhead && len(c.Parts.Beyond) > 0 && !c.inPage():
		return "predicted from the steps of the load; the time of garbage collection and files shared with other browsers change it"
	case x.Name == figure.FrameworkOverhead:
		return "a difference that carries the errors of all other components, predicted by a rule of thumb"
	case high && c.Others > 0:
		return c.OthersWords()
	case ok:
		return "most of it comes from " + worst
	case high:
		return "not all reserved memory was touched"
	}
	return "something grew that was not predicted: copies during the load, caches, or shared pages"
}

// usualReasons are the causes of errors of components that depend on nothing else; the first that applies counts.
var usualReasons = []struct {
	name  string
	high  bool // also if the prediction is too high
	words string
}{
	{figure.ModelWeights, true,
		"dtypes or tensors differ from the prediction, or the engine holds some twice (repacking, copies to a GPU)"},
	{figure.KVCache, false,
		"the engine reserves more tokens (rounded up, or several slots) or a larger dtype than predicted"},
	{figure.KVCache, true, "the engine reserves fewer tokens or a smaller dtype than predicted"},
	{figure.Activations, true,
		"depends on the batch size and on how the engine's allocator shares buffers, which differs between versions"},
}

// worst names the component of a sum with the largest error in MiB.
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
