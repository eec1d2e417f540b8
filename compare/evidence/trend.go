package evidence

import (
	"math"

	"llmparity/compare/explain"
	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

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
	// RecordCode is its more detailed code in the record, where that is another one.
	RecordCode string `json:"record_code,omitempty"`
}
