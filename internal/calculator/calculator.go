// Package calculator compares the result of another memory calculator with a measured memory profile.
package calculator

import (
	"fmt"
	"math"
	"strings"

	"llmparity/internal/accuracy"
	"llmparity/internal/estimate"
	"llmparity/internal/fault"
)

// Calculated is the result of a calculator, in the profile's unit. NaN is a missing value.
type Calculated struct{ Weights, KV, Activation, Overhead, MultiGPU float64 }

// calculation is one component of a result.
type calculation struct {
	name, flag, title string
	value             float64
}

func (c Calculated) parts() []calculation {
	return []calculation{{estimate.Weights, "--calc-weights", "weights", c.Weights},
		{estimate.KVReserved, "--calc-kv", "KV cache", c.KV},
		{estimate.Activation, "--calc-activations", "activations", c.Activation},
		{estimate.Framework, "--calc-overhead", "framework overhead", c.Overhead},
		{estimate.MultiGPU, "--calc-multi-gpu", "multi-GPU overhead", c.MultiGPU}}
}

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
	for _, p := range c.parts() {
		if math.IsNaN(p.value) {
			continue
		}
		if given = true; p.value < 0 || p.value > 1<<30 {
			return fault.New(fault.Usage, "give a size in gigabytes", "%s is %g", p.flag, p.value)
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
		part := c.parts()[i]
		given, optional := !math.IsNaN(part.value), part.name == estimate.MultiGPU
		switch {
		case given:
			total += part.value
		case optional && (math.IsNaN(measured) || measured == 0):
			continue
		case !optional:
			missing = append(missing, part.title)
		}
		origin, unmeasured := p.Arithmetic[part.name]
		if unmeasured {
			measured = math.NaN()
		}
		x := r.add(part.name, measured, part.value)
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
		return "check the KV cache dtype and the batch size; llama.cpp, WebLLM and vLLM reserve the whole context"
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
