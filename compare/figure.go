package compare

import (
	"fmt"
	"math"
	"slices"

	"llmparity/compare/stats"
	"llmparity/internal/record"
)

// TooFewRuns is an interval's note where the launches don't suffice for one.
const TooFewRuns = "too few runs"

// notPositive is one's where launches suffice, and a ratio of what some of them have makes no sense.
const notPositive = "not all values above 0"

// shared is one's where launches were not each repetition's own.
const shared = "repetitions share launches"

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

// add keeps a launch's value; what is not a number is no value, and neither is a time of less than none.
func (f *Figure) add(attempt int, v float64) {
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
	case v < 0 && f.Unit == "ms":
		f.Warnings = append(f.Warnings, record.Warning{Code: "clock-backwards",
			Text: fmt.Sprintf("that of launch %d is left out: by the record it ended before it began", attempt)})
	default:
		f.Values = append(f.Values, Value{attempt, stats.Round(v, 6)})
	}
}

// summarise fills in what follows from the values.
func (f *Figure) summarise() {
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
		f.Method = byClock
	}
	f.Origin = f.origin()
	center := stats.Median(f.numbers())
	f.Median = &center
	if f.arithmetic() {
		f.Note = string(f.Origin)
		return
	}
	if f.Interval = stats.MedianInterval(f.numbers(), stats.Confidence); f.Interval == nil {
		f.Note = TooFewRuns
		return
	}
	f.Interval.Confidence = stats.Round(f.Interval.Confidence, 6)
}

func (f Figure) numbers() []float64 {
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
