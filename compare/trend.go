package compare

import (
	"fmt"
	"math"
	"slices"

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
	if f.N < minRuns {
		return
	}
	warn := func(code, format string, args ...any) {
		f.Warnings = append(f.Warnings, record.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	values, center := f.numbers(), math.Abs(f.Center())
	deviation := robustDeviation(values)
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
	if slope, p := drift(values); p <= trendAlpha && math.Abs(slope)*float64(f.N-1) > mentioned*center {
		warn(Trend, "%+.2g %s from each launch to the next (Theil-Sen; Mann-Kendall p = %.2g): launches are not alike",
			slope, unit, p)
	}
	if center > 0 && deviation > noisyShare*center {
		warn(NoisyFigure, "launches vary by %.0f %%", 100*deviation/center)
	}
}

// robustDeviation goes by the median distance from the median, scaled to be the standard deviation of a bell curve; 0
// where more than half of all values are equal.
func robustDeviation(values []float64) float64 {
	center := median(values)
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - center)
	}
	return 1.4826 * median(distances)
}

// drift is Theil and Sen's slope from one value to the next, and Mann and Kendall's p of there being none.
func drift(values []float64) (slope, p float64) {
	n, s := len(values), 0
	points := make([]xy, n)
	for i := range values {
		points[i] = xy{float64(i), values[i]}
		for _, before := range values[:i] {
			switch {
			case values[i] > before:
				s++
			case values[i] < before:
				s--
			}
		}
	}
	if n < 2 {
		return 0, 1
	}
	fit, _ := theilSen(points)
	sorted := slices.Sorted(slices.Values(values))
	ties := 0.0
	for i := 0; i < n; {
		j := i
		for j < n && sorted[j] == sorted[i] {
			j++
		}
		t := float64(j - i)
		ties += t * (t - 1) * (2*t + 5)
		i = j
	}
	if ties == 0 && n <= exactly {
		return fit.slope, kendall(n, s)
	}
	N := float64(n)
	variance := (N*(N-1)*(2*N+5) - ties) / 18
	if variance <= 0 || s == 0 {
		return fit.slope, 1
	}
	return fit.slope, math.Erfc((math.Abs(float64(s)) - 1) / math.Sqrt(2*variance))
}

// kendall is the share of all orders of n values whose pairs are in order, less those that are not, by as many as s or
// more, either way.
func kendall(n, s int) float64 {
	ways := []float64{1} // by the number of pairs that are not in order, as a share
	for k := 2; k <= n; k++ {
		next := make([]float64, len(ways)+k-1)
		for i, w := range ways {
			for d := range k {
				next[i+d] += w / float64(k)
			}
		}
		ways = next
	}
	all := n * (n - 1) / 2
	p := 0.0
	for inverted, share := range ways {
		if d := all - 2*inverted; max(d, -d) >= max(s, -s) {
			p += share
		}
	}
	return min(1, p)
}

// watched lists the figures that launches are looked at for: not those that count tokens.
func watched(name string) bool { return name != Tokens && name != Prompt && name != Cached }

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
