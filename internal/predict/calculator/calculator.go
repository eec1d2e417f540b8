// Package calculator compares the result of another memory calculator with a measured memory profile. It is given the
// other's sizes and computes none.
package calculator

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/predict/accuracy"
	"llmparity/internal/predict/estimate"
)

// Parts are the components of a result: their names, flags with help, and titles in a sentence.
var Parts = [...]struct{ Name, Flag, Help, title string }{
	{estimate.Weights, "calc-weights", "size of the weights in the other calculator", "weights"},
	{estimate.KVReserved, "calc-kv", "size of the KV cache in the other calculator", "KV cache"},
	{estimate.Activation, "calc-activations", "size of the activations in the other calculator", "activations"},
	{estimate.Framework, "calc-overhead", "the runtime's overhead in the other calculator", "framework overhead"},
	{estimate.MultiGPU, "calc-multi-gpu", "the overhead of several devices in the other calculator", "multi-GPU overhead"},
}

// Calculated is the result of a calculator, in the profile's unit, in the order of Parts. NaN is a missing value.
type Calculated [len(Parts)]float64

// Compared is a measured and calculated component.
type Compared struct {
	Name       string   `json:"name"`
	Measured   *float64 `json:"measured_gb"`
	Calculated *float64 `json:"calculated_gb"`
	Difference *float64 `json:"difference_gb,omitempty"`
	// Percent is the difference in percent of the measured value.
	Percent *float64 `json:"difference_percent,omitempty"`
	// Match is the smaller value in percent of the larger.
	Match    *float64           `json:"match_percent,omitempty"`
	Expected *accuracy.Expected `json:"expected,omitempty"` // usual accuracy of a calculation
	Verdict  string             `json:"verdict"`            // within, outside, not measured, not calculated
	Why      string             `json:"why,omitempty"`
}

// Comparison is a profile compared with a calculation.
type Comparison struct {
	Components      []Compared `json:"components"`
	Recommendations []string   `json:"recommendations"`
}

// Verdicts of a component.
const (
	Within        = "within"
	Outside       = "outside"
	NotMeasured   = "not measured"
	NotCalculated = "not calculated"
)

// Check refuses an impossible calculation.
func (c Calculated) Check() error {
	given := false
	for i, size := range c {
		if math.IsNaN(size) {
			continue
		}
		if given = true; size < 0 || size > 1<<30 {
			return fault.New(fault.Usage, "give a size in gigabytes", "--%s is %g", Parts[i].Flag, size)
		}
	}
	if !given {
		return fault.New(fault.Usage, "give --calc-weights, --calc-kv, --calc-activations or --calc-overhead",
			"no calculated size is given")
	}
	return nil
}

// Against compares the calculation with a profile. The total does not need the overhead of several devices, which is
// small and rarely calculated.
func (c Calculated) Against(p Profile) Comparison {
	var r Comparison
	var missing []string
	total := 0.0
	for i, measured := range []float64{p.Weights, p.KV, p.Activation, p.Overhead, p.MultiGPU} {
		part := Parts[i]
		given, optional := !math.IsNaN(c[i]), part.Name == estimate.MultiGPU
		switch {
		case given:
			total += c[i]
		case optional && (math.IsNaN(measured) || measured == 0):
			continue
		case !optional:
			missing = append(missing, part.title)
		}
		origin, unmeasured := p.Arithmetic[part.Name]
		if unmeasured {
			measured = math.NaN()
		}
		x := r.add(part.Name, measured, c[i])
		if unmeasured {
			x.Why = fmt.Sprintf("%s in the profile, not a measurement, so it can't confirm the calculation", origin)
		}
	}
	if len(missing) > 0 {
		r.add(estimate.Total, p.Total, math.NaN()).Why = "the calculation lacks " + strings.Join(missing, ", ")
	} else {
		r.add(estimate.Total, p.Total, total)
	}
	r.recommend(p)
	return r
}

func (r *Comparison) add(name string, measured, calculated float64) *Compared {
	x := Compared{Name: name, Measured: known(measured), Calculated: known(calculated)}
	if e, ok := accuracy.Of(name); ok {
		x.Expected = &e
	}
	switch {
	case x.Measured == nil:
		x.Verdict = NotMeasured
	case x.Calculated == nil:
		x.Verdict = NotCalculated
	default:
		x.Difference = known(calculated - measured)
		if measured > 0 {
			x.Percent = known(100 * (calculated - measured) / measured)
			x.Match = known(100 * min(measured, calculated) / max(measured, calculated))
		}
		x.judge(measured, calculated)
	}
	r.Components = append(r.Components, x)
	return &r.Components[len(r.Components)-1]
}

// judge compares a difference with the usual accuracy.
func (x *Compared) judge(measured, calculated float64) {
	x.Verdict = Outside
	switch {
	case measured < 0:
		x.Why = fmt.Sprintf("the measured value is negative (%.3g): it is a difference, and the other components are too large by that much", measured)
	case x.Expected == nil && measured != calculated:
		x.Why = "no usual accuracy is known"
	case x.Expected == nil, measured == 0 && calculated == 0,
		x.Percent != nil && math.Abs(*x.Percent) <= x.Expected.Variance*(1+1e-9):
		x.Verdict = Within
	}
}

func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// decimalShare is the difference between a GiB and a GB, in percent.
const decimalShare = 7.374

// recommend suggests causes of the differences.
func (r *Comparison) recommend(p Profile) {
	say := func(format string, args ...any) {
		r.Recommendations = append(r.Recommendations, fmt.Sprintf(format, args...))
	}
	for _, x := range r.Components {
		if x.Verdict == Outside && x.Percent != nil {
			if cause := x.cause(); cause != "" {
				say("%s: calculated %s%s; %s", titles[x.Name], off(*x.Percent), x.usual(), cause)
			}
		}
	}
	for _, x := range r.Components {
		switch {
		case x.Verdict == NotMeasured && x.Why == "" && x.Name != estimate.Total && x.Calculated != nil:
			say("%s: not measured in this profile", titles[x.Name])
		case x.Why != "" && x.Name != estimate.MultiGPU:
			say("%s: %s", titles[x.Name], x.Why)
		}
	}
	if p.KVUsed < p.KV {
		say("KV cache: %.3g of %.3g GiB was in use; compare with the reserved size only if the calculator assumes the whole context", p.KVUsed, p.KV)
	}
	if len(r.Recommendations) == 0 {
		say("every component is within the usual accuracy")
	}
}

func (x Compared) usual() string {
	if x.Expected == nil {
		return ""
	}
	return fmt.Sprintf(" (usual: ±%.0f%%)", x.Expected.Variance)
}

// cause suggests why a calculation is off.
func (x Compared) cause() string {
	percent := *x.Percent
	near := func(p float64) bool { return math.Abs(percent-p) < 5 }
	high := percent > 0
	switch x.Name {
	case estimate.Weights:
		switch {
		case math.Abs(percent-decimalShare) < 1:
			return "this is the difference between GB and GiB: give --calc-unit GB if the calculator counts in GB"
		case near(100), near(-50):
			return "a factor of two: check the dtype of the weights"
		case high:
			return "check parameters and dtype; count tied embeddings once"
		}
		return "check parameters and dtype; add scales, unquantised parts (embedding, head, norms) and copies on several devices"
	case estimate.KVReserved:
		if high {
			return "check the number of key-value heads and the sliding window, and that the measured size is the reserved one"
		}
		return "check the KV cache dtype and the batch size; most engines reserve the whole context"
	case estimate.Activation:
		return "it grows with the tokens computed at a time, the feed-forward width, and the vocabulary if all logits are kept"
	case estimate.Framework:
		if high {
			return "contexts and graphs may count as activations here"
		}
		return "add the GPU context, captured graphs and memory pools"
	}
	return ""
}

// off describes the deviation of a calculation.
func off(percent float64) string {
	switch {
	case percent > 300:
		return fmt.Sprintf("%.3g times the measured size", 1+percent/100)
	case percent > 0:
		return fmt.Sprintf("%.1f%% too high", percent)
	}
	return fmt.Sprintf("%.1f%% too low", -percent)
}

// titles are the names of the components for people.
var titles = map[string]string{estimate.Weights: "Model weights", estimate.KVReserved: "KV cache",
	estimate.Activation: "Activations", estimate.Framework: "Framework overhead",
	estimate.MultiGPU: "Multi-GPU overhead", estimate.Total: "Total"}

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
