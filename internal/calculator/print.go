package calculator

import (
	"cmp"
	"fmt"
	"io"

	"llmparity/internal/words"
)

// Print writes a comparison for people.
func (r Comparison) Print(w io.Writer, p Profile) {
	name := cmp.Or(p.Model, "unnamed model")
	if p.Engine != "" {
		name += " in " + p.Engine
	}
	fmt.Fprintf(w, "%s, measured and calculated (GiB, 2^30 bytes)\n\n", name)
	const row = "%-20s %10s %10s %11s %9s %7s  %-8s %-8s %s\n"
	fmt.Fprintf(w, row, "component", "measured", "calculated", "difference", "percent", "match",
		"usual", "usual", "verdict")
	fmt.Fprintf(w, row, "", "GiB", "GiB", "GiB", "", "", "percent", "match", "")
	for _, c := range r.Components {
		match, variance := "-", "-"
		if c.Expected != nil {
			match, variance = c.Expected.Match, fmt.Sprintf("±%.0f%%", c.Expected.Variance)
		}
		fmt.Fprintf(w, row, titles[c.Name], amount("%.4g", c.Measured), amount("%.4g", c.Calculated),
			amount("%+.4g", c.Difference), amount("%+.4g%%", c.Percent), amount("%.3g%%", c.Match), variance, match,
			c.Verdict)
	}
	fmt.Fprintln(w)
	for _, line := range append(r.Recommendations, p.Notes...) {
		fmt.Fprint(w, words.Folded("- "+line))
	}
	if p.Unit == "" {
		fmt.Fprint(w, words.Folded("- the profile does not name its unit; GiB (2^30 bytes) is assumed"))
	}
}

func amount(format string, v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}
