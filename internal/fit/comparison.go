package fit

import (
	"cmp"
	"fmt"
	"io"

	"llmparity/internal/estimate"
)

// PrintComparison says for people how a calculator's numbers compare with a profile's.
func PrintComparison(w io.Writer, p estimate.Profile, r estimate.Comparison) {
	name := cmp.Or(p.Model, "a model without a name")
	if p.Engine != "" {
		name += " in " + p.Engine
	}
	fmt.Fprintf(w, "%s, measured and calculated (GiB, 2^30 bytes)\n\n", name)
	fmt.Fprintf(w, "%-20s %10s %10s %11s %9s %7s  %-8s %-8s %s\n", "component", "measured", "calculated", "difference",
		"variance", "match", "expected", "expected", "verdict")
	fmt.Fprintf(w, "%-20s %10s %10s %11s %9s %7s  %-8s %-8s %s\n", "", "GiB", "GiB", "GiB", "", "", "variance", "match",
		"by variance")
	for _, c := range r.Components {
		match, variance := "-", "-"
		if c.Expected != nil {
			match, variance = c.Expected.Match, fmt.Sprintf("±%.0f%%", c.Expected.Variance)
		}
		fmt.Fprintf(w, "%-20s %10s %10s %11s %9s %7s  %-8s %-8s %s\n", accuracyNames[c.Name],
			amount("%.4g", c.Measured), amount("%.4g", c.Calculated),
			amount("%+.4g", c.Difference), amount("%+.4g%%", c.Percent), amount("%.3g%%", c.Match), variance, match,
			c.Verdict)
	}
	fmt.Fprintln(w, "\nRecommendations")
	for _, line := range r.Recommendations {
		fmt.Fprint(w, folded("- "+line))
	}
	for _, line := range p.Notes {
		fmt.Fprint(w, folded("! "+line))
	}
	if p.Unit == "" {
		fmt.Fprint(w, folded("! the profile doesn't say whether its gigabytes are 2^30 bytes or 10^9; the former is taken"))
	}
}

func amount(format string, v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}

// accuracyNames are the names of the table of expected accuracy.
var accuracyNames = map[string]string{estimate.Weights: "Model Weights", estimate.KVReserved: "KV Cache",
	estimate.Activation: "Activations",
	estimate.Framework:  "Framework Overhead", estimate.MultiGPU: "Multi-GPU Overhead", estimate.Total: "Total Memory"}
