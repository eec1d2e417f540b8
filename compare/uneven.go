package compare

import (
	"fmt"
	"math"

	"llmparity/compare/explain"
	"llmparity/compare/stats"
)

// spread warns of a difference that may be one of how much launches vary: one side's vary so much more that Mann and
// Whitney's test, which takes for granted that equals vary alike, calls equal medians different too often.
func (x *Ratio) spread(a, b *Cell, s stats.Sides) {
	times, right, ok := s.Wider()
	if !x.Significant || !ok {
		return
	}
	of, than := a, b
	if right {
		of, than = b, a
	}
	vary := fmt.Sprintf("launches vary %s times as much as those of %s", explain.Short(times), than.Label)
	if math.IsInf(times, 1) {
		vary = fmt.Sprintf("launches vary and those of %s do not", than.Label)
	}
	x.Warnings = append(x.Warnings, Warning{explain.Warning(explain.UnevenSpread, vary), of.Label})
	x.uneven = true
}
