// Package evidence is what all parts of a comparison go by: a figure over a cell's launches, the launches that
// attempts were in, and the readings of a phase. A figure has its values, its median and interval, where they come
// from, and what to know before believing them.
//
// It can't tell what a figure is of: names, units and explanations are the table's (internal/figure), and values are
// worked out by those who know the record.
package evidence

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Held finds a figure in one of a breakdown's lists.
func Held(list []Figure, name string) Figure {
	for _, f := range list {
		if f.Name == name {
			return f
		}
	}
	return Figure{Name: name, Absent: "not measured"}
}

// Exact keeps a launch's value unrounded: bytes in MiB are exact in binary, and add up.
func (f *Figure) Exact(attempt int, v float64) {
	if !math.IsNaN(v) {
		f.Values = append(f.Values, Value{attempt, v})
	}
}

// Summarised are figures with what follows from their values.
func Summarised(figures []Figure) []Figure {
	for i := range figures {
		figures[i].Summarise()
	}
	return figures
}

// PerLaunch is one value a launch: what was measured several times in one is not independent.
func (f Figure) PerLaunch(launch map[int]int) []float64 {
	var order []int
	values := map[int][]float64{}
	for _, v := range f.Values {
		l := launch[v.Attempt]
		if values[l] == nil {
			order = append(order, l)
		}
		values[l] = append(values[l], v.Value)
	}
	out := make([]float64, len(order))
	for i, l := range order {
		out[i] = stats.Median(values[l])
	}
	return out
}

// TooFewRuns is an interval's note where the launches don't suffice for one.
const TooFewRuns = "too few runs"

// Figure is one quantity of a cell over its counted launches.
type Figure struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit"`
	// Reported marks what the engine says of itself; we did not measure it.
	Reported bool `json:"reported,omitempty"`
	// Beside is the figure of ours that a reported one belongs next to.
	Beside string  `json:"beside,omitempty"`
	Values []Value `json:"values"`
	N      int     `json:"n"`
	// Median is nil where there is no value.
	Median *float64 `json:"median,omitempty"`
	// Interval is nil where there is none, and Note then says why.
	Interval *stats.Interval `json:"interval"`
	Note     string          `json:"interval_note,omitempty"`
	// Absent says why there is no value.
	Absent string `json:"absent,omitempty"`
	How    string `json:"how"` // how it was obtained and what it can't see
	// Origin is empty where there is no value.
	Origin record.Origin `json:"origin,omitempty"`
	// Method names what the values come from, and Blind what that can't see.
	Method string `json:"method,omitempty"`
	Blind  string `json:"blind,omitempty"`
	// Warnings are what to know of the launches before believing it: outliers, a trend, noise.
	Warnings []record.Warning `json:"warnings,omitempty"`
}

// Value is a figure of one launch.
type Value struct {
	Attempt int     `json:"attempt"`
	Value   float64 `json:"value"`
}

// Known tells whether there is anything to show.
func (f Figure) Known() bool { return f.Median != nil }

// Center is the median; NaN where there is no value.
func (f Figure) Center() float64 {
	if f.Median == nil {
		return math.NaN()
	}
	return *f.Median
}

// Add keeps a launch's value; what is not a number is no value, and neither is a time of less than none.
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
		if f.Absent == "" {
			f.Absent = "not measured"
		}
		return
	}
	f.Absent = ""
	if f.Method == "" && f.TimeOrRate() {
		f.Method = ByClock
	}
	f.Origin = f.origin()
	center := stats.Median(f.Numbers())
	f.Median = &center
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

// TimeOrRate tells figures that others on a machine, or beside it, make worse.
func (f *Figure) TimeOrRate() bool {
	return slices.Contains([]string{"ms", "µs", "tokens/s", "requests/s"}, f.Unit)
}

// LookedAt is the interval at the last of several looks.
func (f *Figure) LookedAt(s record.Stop) {
	if f.N == 0 {
		return
	}
	f.Interval, f.Note = nil, TooFewRuns
	f.How += fmt.Sprintf("; launches were added until %s was known well enough, with up to %d looks: the interval is one of %s %%, so that it holds in %s %% "+
		"of cases whenever that stops", s.Figure, s.Looks, explain.Percent(s.Confidence), explain.Percent(s.Level))
	if of := stats.MedianInterval(f.Numbers(), s.Confidence); of != nil {
		f.Interval, f.Note = of, ""
		of.Confidence = stats.Round(max(s.Level, 1-float64(s.Looks)*(1-of.Confidence)), 6)
	}
}

// New is one of the table's, without values.
func New(name string) Figure {
	r := figure.New(name)
	return Figure{Name: r.Name, Title: r.Title, Unit: r.Unit, How: r.How, Absent: r.Absent}
}

// PerRequest takes the median within the launch: the launch is the unit of repetition, requests inside one are not
// independent.
func PerRequest(attempts []*record.Attempt, of func(*record.Request) float64, f Figure) Figure {
	for _, a := range attempts {
		f.Add(a.ID, figure.OverRequests(of, a.Measured()))
	}
	return f
}

// Value finds a launch's value; NaN where there is none.
func (f Figure) Value(launch int) float64 {
	for _, v := range f.Values {
		if v.Attempt == launch {
			return v.Value
		}
	}
	return math.NaN()
}
