package webllm

import (
	"cmp"
	"fmt"
	"slices"

	"llmparity/compare/stats"
)

// interval is a median and its confidence interval by order statistics, which assumes no distribution.
type interval struct{ median, low, high float64 }

func medianOf(all []float64) interval {
	i := cmp.Or(stats.MedianInterval(all, stats.Confidence), &stats.Interval{Lo: slices.Min(all), Hi: slices.Max(all)})
	return interval{stats.Median(all), i.Lo, i.Hi}
}

func (i interval) String() string {
	return fmt.Sprintf("%.3f (95 %%: %.3f to %.3f)", i.median, i.low, i.high)
}
