package fit

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"llmparity/internal/kit/words"
	"llmparity/internal/predict/estimate"
	"llmparity/internal/record"
	"llmparity/internal/stats"
)

// row is a component's name for people. Details are printed on request only.
type row struct {
	name    string
	details bool
}

var rows = map[string]row{
	estimate.Weights: {name: "weights"}, estimate.KVReserved: {name: "KV cache"},
	estimate.KVUsed: {"KV cache, filled", true}, estimate.Activation: {name: "activations"},
	estimate.Framework: {name: "engine itself"}, estimate.MultiGPU: {name: "several devices"},
	estimate.Together: {name: "weights, KV cache, activations"}, estimate.Total: {name: "total"},
	estimate.TotalUsed: {"total, KV cache as filled", true}, estimate.Increase: {"growth of the processes (PSS)", true},
}

// needed names the memory that the answer compares with what is available.
var needed = map[string]string{estimate.RAM: "RAM needed", estimate.VRAM: "GPU memory needed"}

// Print writes the answer for people: whether the model fits, and a table of its components. With details, it adds the
// method of each figure and the need of each place.
func (e Answer) Print(w io.Writer, details bool) {
	m, s := e.Model, e.Setup
	context := s.Context
	if m.Stated != nil && m.Stated.PerToken == 0 {
		context = m.Stated.Context
	}
	fmt.Fprintf(w, "%s\n\n%s in %s: context %d tokens, %s%s, KV cache in %s\n", e.Fit, m.Name, s.Engine.Title, context,
		words.Count(e.Sequences, "sequence"), devicesOf(s), cmp.Or(e.DTypes.KVCache, "an unknown dtype"))
	if shape := shapeOf(m); shape != "" {
		fmt.Fprintln(w, shape)
	}
	unit, divisor := "MiB", float64(record.MiB)
	if e.Component(estimate.Total).Best >= 4<<30 {
		unit, divisor = "GiB", 1<<30
	}
	const line = "%-30s %10s  %-21s  %-8s  %s"
	table := []string{fmt.Sprintf(line, "", unit, "range", "dtype", "origin")}
	sums := e.sums(divisor)
	add := func(name string, c estimate.Component) {
		span := ""
		if c.Low != c.High {
			span = size(c.Low, divisor) + " to " + size(c.High, divisor)
		}
		best := cmp.Or(sums[c.Name], size(c.Best, divisor))
		table = append(table, fmt.Sprintf(line, name, best, span, c.DType, c.Label))
	}
	for _, c := range e.Components {
		if r := rows[c.Name]; details || !r.details {
			add(r.name, c)
		}
		if before := s.Engine.Before; c.Name == estimate.Total && before > 0 {
			add(s.Engine.Title+" before the load", estimate.Component{Low: before, Best: before, High: before})
		}
	}
	for _, n := range e.Needs() {
		if name := needed[n.Place]; name != "" && n.Best != e.Component(estimate.Total).Best {
			add(name, estimate.Component{Low: n.Low, Best: n.Best, High: n.High})
		}
	}
	fmt.Fprintln(w)
	for _, text := range table {
		fmt.Fprintln(w, strings.TrimRight(text, " "))
	}
	fmt.Fprint(w, "\nNothing was measured. A measurement should lie within the range; sizes without a range are exact.\n")
	list(w, "", e.Warnings)
	if e.Risk.Level != record.RiskLow {
		list(w, "To need less memory:", e.Risk.Recommendations)
	}
	if details {
		e.details(w, unit, divisor)
	} else {
		fmt.Fprint(w, "\n--details shows how each size is calculated, and the need and the limit of each kind of memory.\n")
	}
}

// sums are the sizes of the components that add up to the total, rounded so that they do as they are printed.
func (e Answer) sums(divisor float64) map[string]string {
	var names []string
	var parts []float64
	for _, c := range e.Components {
		if !slices.Contains([]string{estimate.KVUsed, estimate.Total, estimate.TotalUsed, estimate.Increase}, c.Name) {
			names, parts = append(names, c.Name), append(parts, float64(c.Best)/divisor)
		}
	}
	out := map[string]string{}
	for i, v := range stats.Apportioned(float64(e.Component(estimate.Total).Best)/divisor, parts, 2) {
		out[names[i]] = fmt.Sprintf("%.2f", v)
	}
	return out
}

// Row writes the answer for one of several contexts as a line of a table, and what is assumed below the last.
func (e Answer) Row(w io.Writer, first, last bool) {
	if first {
		fmt.Fprintf(w, "%s in %s, KV cache in %s\n\nCONTEXT  KV CACHE   ANSWER\n", e.Model.Name, e.Setup.Engine.Title,
			cmp.Or(e.DTypes.KVCache, "an unknown dtype"))
	}
	cache := "?"
	if n := cmp.Or(e.Component(estimate.KVReserved).Best, e.PerToken*int64(e.Setup.Context)); n > 0 {
		cache = words.Size(n)
	}
	fmt.Fprintf(w, "%-7d  %-9s  %s\n", e.Setup.Context, cache, e.Fit)
	if last {
		list(w, "", e.Warnings)
	}
}

// details lists methods and places.
func (e Answer) details(w io.Writer, unit string, divisor float64) {
	var how, types, places []string
	for _, c := range e.Components {
		if c.Name != estimate.Total && c.Name != estimate.TotalUsed {
			how = append(how, fmt.Sprintf("%s (confidence: %s): %s", rows[c.Name].name, c.Confidence, c.Method))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.ByFormat)) {
		types = append(types, size(e.ByFormat[name], divisor)+" "+unit+" "+name)
	}
	if e.ScaleBytes > 0 {
		types = append(types, fmt.Sprintf("%s of these are scales in %s", words.Size(e.ScaleBytes), e.DTypes.Scales))
	}
	if len(types) > 1 {
		how = append(how, "weights by dtype: "+strings.Join(types, ", "))
	}
	how = append(how, "activations in "+e.DTypes.Activations)
	list(w, "How each size is calculated (sums over all devices):", how)
	for _, p := range e.Risk.Places {
		places = append(places, fmt.Sprintf("%s: needs %s of %s (%s): %s", p.Name, words.Size(p.Need),
			words.Size(p.Free), p.How, p.Level.Words()))
	}
	list(w, "The need and the limit of each kind of memory:", append(places, e.Risk.Reasons...))
}

// list writes a heading and bullets, or nothing without bullets.
func list(w io.Writer, heading string, bullets []string) {
	if len(bullets) == 0 {
		return
	}
	fmt.Fprintln(w)
	if heading != "" {
		fmt.Fprintln(w, heading)
	}
	for _, text := range bullets {
		fmt.Fprint(w, words.Folded("- "+text))
	}
}

// size formats with at least two significant digits.
func size(bytes int64, divisor float64) string {
	v := float64(bytes) / divisor
	if v >= 0.1 || v == 0 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func shapeOf(m estimate.Model) string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(m.Type != "", "%s", m.Type)
	add(m.Parameters > 0, "%s parameters", parameters(m.Parameters))
	add(m.Active > 0 && m.Active < m.Parameters, "%s active per token", parameters(m.Active))
	add(m.Layers > 0 && m.Heads > 0, "%d layers, hidden size %d, %d heads (%d for keys and values) of %d", m.Layers,
		m.Hidden, m.Heads, m.KVHeads, m.HeadDim)
	return strings.Join(parts, ", ")
}

// parameters formats a count: 0.4 M, 46.7 B.
func parameters(n int64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.1f B", float64(n)/1e9)
	}
	return fmt.Sprintf("%.1f M", float64(n)/1e6)
}

func devicesOf(s estimate.Setup) string {
	if s.TensorParallel > 1 {
		return fmt.Sprintf(", %d devices", s.TensorParallel)
	}
	return ""
}
