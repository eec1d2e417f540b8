package compare

import (
	"fmt"
	"math"

	"llmparity/internal/record"
)

// UnevenSpread is the code of a warning beside a difference: one side's launches vary so much more that Mann and
// Whitney's test, which takes for granted that equals vary alike, calls equal medians different too often.
const UnevenSpread = "uneven-spread"

const (
	// uneven is how many times as much one side's launches vary.
	uneven = 2.5
	// apartEnough is how many standard deviations of the side that varies more lie between medians that no such chance
	// explains.
	apartEnough = 3
)

// wider tells how many times as much the launches of one side vary, and of which, where what was seen may be that
// alone: as shares, where all are above zero.
func (s sides) wider() (times float64, right, ok bool) {
	x, y := s.a, s.b
	if s.positive {
		x, y = logsOf(x), logsOf(y)
	}
	a, b := deviation(x), deviation(y)
	times = max(a, b) / min(a, b)
	far := math.Abs(median(x) - median(y))
	return times, b > a, times >= uneven && far < apartEnough*max(a, b)
}

func logsOf(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log(v)
	}
	return out
}

// deviation is the standard deviation; NaN of fewer than two values.
func deviation(values []float64) float64 {
	mean, squares, n := 0.0, 0.0, float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / (n - 1))
}

// spread warns of a difference that may be one of how much launches vary.
func (x *Ratio) spread(a, b *Cell, s sides) {
	times, right, ok := s.wider()
	if !x.Significant || !ok {
		return
	}
	of, than := a, b
	if right {
		of, than = b, a
	}
	vary := fmt.Sprintf("launches vary %s times as much as those of %s", short(times), than.Label)
	if math.IsInf(times, 1) {
		vary = fmt.Sprintf("launches vary and those of %s do not", than.Label)
	}
	x.Warnings = append(x.Warnings, Warning{record.Warning{Code: UnevenSpread, Text: vary +
		": then equal medians are called different oftener than one time in twenty"}, of.Label})
	x.uneven = true
}
