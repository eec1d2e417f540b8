package evidence

import (
	"math"

	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

const (
	// farOut is how many robust standard deviations (1.4826 times the median absolute deviation) an outlier lies from
	// the median. That is far, because of ten values the deviation itself is known badly: with 5 one in twenty series
	// of a bell curve has such a one, with 8 one in more than a hundred.
	farOut = 8
	// trendAlpha is stricter than what differences are called by: every figure of every cell is looked at.
	trendAlpha = 0.01
	// noisyShare is the robust standard deviation, as a share of the median, from which on launches are called noisy.
	noisyShare = 0.10
	// mentioned is the share of the median below which neither an outlier nor a trend is worth a word.
	mentioned = 0.02
)

// watch looks at a figure's launches in the order in which they were: values far from all others, a drift, launches
// that vary much. None of it is said of fewer launches than an interval takes.
func (f *Figure) watch() {
	if f.N < stats.MinRuns {
		return
	}
	warn := func(r explain.Remark, args ...any) { f.Warnings = append(f.Warnings, r.With(args...)) }
	values, center := f.Numbers(), math.Abs(f.Center())
	deviation := stats.RobustDeviation(values)
	far := 0
	var farthest Value
	for _, v := range f.Values {
		off := math.Abs(v.Value - f.Center())
		if off > farOut*deviation && off > mentioned*center {
			if far++; off > math.Abs(farthest.Value-f.Center()) || far == 1 {
				farthest = v
			}
		}
	}
	if far > 0 {
		warn(explain.Outliers, far, f.N, explain.WithUnit(farthest.Value, f.Unit), farthest.Attempt)
	}
	if slope, p := stats.Drift(values); p <= trendAlpha && math.Abs(slope)*float64(f.N-1) > mentioned*center {
		warn(explain.Trend, slope, f.Unit, p)
	}
	if center > 0 && deviation > noisyShare*center {
		warn(explain.WideInterval, 100*deviation/center)
	}
}

// Watch puts warnings beside a cell's figures; busy says who else used the machine. Those that count tokens are not
// looked at.
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
	// RecordCode is its more detailed code in the record, where that is another one.
	RecordCode string `json:"record_code,omitempty"`
}
