package compare

import (
	"fmt"
	"math"

	"llmparity/compare/stats"
	"llmparity/internal/figure"
	"llmparity/internal/record"
)

// Codes of warnings beside a figure.
const (
	Outliers    = "outliers"
	Trend       = "trend"
	NoisyFigure = "noisy"
	BusyMachine = "busy-machine"
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
func (f *Figure) watch(unit string) {
	if f.N < stats.MinRuns {
		return
	}
	warn := func(code, format string, args ...any) {
		f.Warnings = append(f.Warnings, record.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	values, center := f.numbers(), math.Abs(f.Center())
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
		warn(Outliers, "%d of %d far from the median, the farthest %s %s (attempt %d)", far, f.N, short(farthest.Value),
			unit, farthest.Attempt)
	}
	if slope, p := stats.Drift(values); p <= trendAlpha && math.Abs(slope)*float64(f.N-1) > mentioned*center {
		warn(Trend, "%+.2g %s from each launch to the next (Theil-Sen; Mann-Kendall p = %.2g): launches are not alike",
			slope, unit, p)
	}
	if center > 0 && deviation > noisyShare*center {
		warn(NoisyFigure, "launches vary by %.0f %%", 100*deviation/center)
	}
}

// watched lists the figures that launches are looked at for: not those that count tokens.
func watched(name string) bool {
	return name != figure.Tokens && name != figure.Prompt && name != figure.Cached
}

// watch puts warnings beside the cell's figures.
func (c *Cell) watch(busy string) {
	for i := range c.Figures {
		f := &c.Figures[i]
		if watched(f.Name) {
			f.watch(f.Unit)
		}
		if busy != "" && f.TimeOrRate() && f.Known() {
			f.Warnings = append(f.Warnings, record.Warning{Code: BusyMachine, Text: busy})
		}
	}
}

// busy says who else used a run's machine; empty where nobody did much, or nobody knows. Load averages are those before
// the run's first launch: later ones have its own engines in them.
func busy(run *record.Run) string {
	if c := Quiet(run.Environment); c.Answer == No {
		return c.Why
	}
	e := run.Environment
	if e.Background != nil || e.Cores == 0 || len(run.Attempts) == 0 {
		return ""
	}
	if load := run.Attempts[0].Load1; load > 0.5*float64(e.Cores) {
		return fmt.Sprintf("the load average was %.2f on %d cores before the first launch", load, e.Cores)
	}
	return ""
}
