package figure

import (
	"fmt"
	"math"
)

// Quantiles are those that are told of.
func Quantiles() []float64 { return []float64{0.5, 0.9, 0.95, 0.99} }

// Percentile is the name of a figure: that which a share of a launch's requests (of their gaps, for OfITL) are not
// above.
func Percentile(of string, share float64) string {
	return fmt.Sprintf("%s_p%g", of, math.Round(100*share))
}
