package fit

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"llmparity/internal/estimate"
	"llmparity/internal/record"
	"llmparity/internal/words"
)

// componentNames are the components' names for people.
var componentNames = map[string]string{
	estimate.Weights: "weights", estimate.KVReserved: "KV cache, reserved", estimate.KVUsed: "  of it used",
	estimate.Activation: "activations, workspaces",
	estimate.Framework:  "framework", estimate.MultiGPU: "several devices", estimate.Total: "total",
	estimate.TotalUsed: "total, KV cache as used",
	estimate.Increase:  "increase of PSS", estimate.Together: "weights, KV cache, workspaces",
}

// Print says it for people.
func (e Answer) Print(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", e.Fit)
	m, s := e.Model, e.Setup
	unit, divisor := "MiB", float64(record.MiB)
	if e.Component(estimate.Total).Best >= 4<<30 {
		unit, divisor = "GiB", 1<<30
	}
	fmt.Fprintf(w, "%s\n", strings.TrimSuffix(m.Name+": "+parametersOf(m)+shapeOf(m), ": "))
	fmt.Fprintf(w, "in %s: %s, room for %d tokens each, %d used%s\n", s.Engine.Name, words.Count(e.Sequences, "sequence"),
		s.Context, e.Tokens, devicesOf(s))
	fmt.Fprintf(w, "weights in %s%s, activations in %s, KV cache in %s\n\n", e.DTypes.Weights, scalesOf(e.Estimate),
		e.DTypes.Activations, cmp.Or(e.DTypes.KVCache, "an unknown type"))
	fmt.Fprintf(w, "%-29s %10s  %21s  %-10s  %-6s  %s\n", "component", unit, "from … to", "figure", "trust", "dtype")
	for _, c := range e.Components {
		if c.Name == estimate.Total {
			fmt.Fprintln(w)
		}
		span := ""
		if c.Low != c.High {
			span = fmt.Sprintf("%s … %s", size(c.Low, divisor), size(c.High, divisor))
		}
		fmt.Fprintf(w, "%-29s %10s  %21s  %-10s  %-6s  %s\n", componentNames[c.Name], size(c.Best, divisor), span,
			c.Label,
			c.Confidence, c.DType)
	}
	fmt.Fprint(w, "\nNo figure is measured. Predicted ones lie in the range, calculated ones follow from sizes and dtypes.\n")
	fmt.Fprintf(w, "\nHow (1 GiB is 2^30 bytes, 1 MiB 2^20; sums over all devices)\n")
	for _, c := range e.Components {
		if c.Name != estimate.Total && c.Name != estimate.TotalUsed {
			fmt.Fprint(w, folded("- "+strings.TrimSpace(componentNames[c.Name])+": "+c.Method))
		}
	}
	if len(e.ByFormat) > 1 {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(e.ByFormat)) {
			words = append(words, name+" "+size(e.ByFormat[name], divisor)+" "+unit)
		}
		fmt.Fprint(w, folded("- weights by type: "+strings.Join(words, ", ")))
	}
	for _, warning := range e.Warnings {
		fmt.Fprint(w, folded("! "+warning))
	}
	printRisk(w, e.Risk)
}

func printRisk(w io.Writer, r record.Risk) {
	fmt.Fprintf(w, "\nRisk of running out of memory: %s\n", r.Level)
	for _, p := range r.Places {
		fmt.Fprint(w, folded(fmt.Sprintf("- %s: %s of %s (%s): %s", p.Name, words.Size(p.Need), words.Size(p.Free),
			p.How, p.Level)))
	}
	for _, reason := range r.Reasons {
		fmt.Fprint(w, folded("! "+reason))
	}
	for _, advice := range r.Recommendations {
		fmt.Fprint(w, folded("> "+advice))
	}
}

// folded breaks a line where a terminal of 120 columns would.
func folded(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		if n := len([]rune(word)); column > 0 && column+1+n > 118 {
			b.WriteString("\n  ")
			column = 2
		} else if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len([]rune(word))
	}
	return b.String() + "\n"
}

// size has three digits at least that say something.
func size(bytes int64, divisor float64) string {
	v := float64(bytes) / divisor
	if v >= 1 || v == 0 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func parametersOf(m estimate.Model) string {
	if m.Parameters == 0 {
		return m.Type
	}
	text := fmt.Sprintf("%d parameters", m.Parameters)
	if m.Active > 0 && m.Active < m.Parameters {
		text += fmt.Sprintf(" (%d that a token passes)", m.Active)
	}
	if m.Type != "" {
		text = m.Type + ", " + text
	}
	return text
}

func shapeOf(m estimate.Model) string {
	if m.Layers == 0 || m.Heads == 0 {
		return ""
	}
	return fmt.Sprintf(", %d layers, hidden size %d, %d heads, %d for keys and values, of %d", m.Layers, m.Hidden,
		m.Heads, m.KVHeads, m.HeadDim)
}

func devicesOf(s estimate.Setup) string {
	if s.TensorParallel > 1 {
		return fmt.Sprintf("; on %d devices", s.TensorParallel)
	}
	return ""
}

func scalesOf(e estimate.Estimate) string {
	switch {
	case e.DTypes.Scales == "":
		return ""
	case e.ScaleBytes > 0:
		return fmt.Sprintf(" with %.1f MiB of scales in %s", float64(e.ScaleBytes)/record.MiB, e.DTypes.Scales)
	}
	return " with scales " + e.DTypes.Scales
}
