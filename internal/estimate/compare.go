package estimate

import (
	"fmt"
	"math"
	"strings"

	"llmparity/internal/accuracy"
	"llmparity/internal/fault"
)

// Calculated is what somebody's calculator says, in the profile's unit; NaN is what it doesn't say.
type Calculated struct{ Weights, KV, Activation, Overhead, MultiGPU float64 }

// calculation is a component of a calculation.
type calculation struct {
	name, flag, words string
	value             float64
}

func (c Calculated) parts() []calculation {
	return []calculation{{Weights, "--calc-weights", "the weights", c.Weights},
		{KVReserved, "--calc-kv", "the KV cache", c.KV},
		{Activation, "--calc-activations", "activations", c.Activation},
		{Framework, "--calc-overhead", "the framework", c.Overhead},
		{MultiGPU, "--calc-multi-gpu", "", c.MultiGPU}}
}

// Compared is a component measured and calculated.
type Compared struct {
	Name       string   `json:"name"`
	Measured   *float64 `json:"measured_gb"`
	Calculated *float64 `json:"calculated_gb"`
	Difference *float64 `json:"difference_gb,omitempty"`
	// Percent is the calculation's deviation from what was measured, in percent of that.
	Percent *float64 `json:"difference_percent,omitempty"`
	// Match is the smaller of both in percent of the larger.
	Match    *float64           `json:"match_percent,omitempty"`
	Expected *accuracy.Expected `json:"expected,omitempty"` // in general
	Verdict  string             `json:"verdict"`            // within, outside, not measured, not calculated
	Why      string             `json:"why,omitempty"`
}

// Comparison is a profile held against a calculation.
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

// Check says why a calculation makes no sense.
func (c Calculated) Check() error {
	said := false
	for _, p := range c.parts() {
		if math.IsNaN(p.value) {
			continue
		}
		if said = true; p.value < 0 || p.value > 1<<30 {
			return fault.New(fault.Usage, "a number of gigabytes is right", "%s is %g", p.flag, p.value)
		}
	}
	if !said {
		return fault.New(fault.Usage, "give --calc-weights, --calc-kv, --calc-activations, --calc-overhead",
			"nothing that was calculated is given")
	}
	return nil
}

// Against holds a profile against a calculation. Few calculators know an overhead of several devices, and it is small:
// a sum without it is one.
func (c Calculated) Against(p Profile) Comparison {
	var r Comparison
	var lacks []string
	total := 0.0
	for i, measured := range []float64{p.Weights, p.KV, p.Activation, p.Overhead, p.MultiGPU} {
		part := c.parts()[i]
		said := !math.IsNaN(part.value)
		if none := math.IsNaN(measured) || measured == 0; part.name == MultiGPU && none && !said {
			continue
		}
		if said {
			total += part.value
		} else if part.words != "" {
			lacks = append(lacks, part.words)
		}
		origin, unmeasured := p.Arithmetic[part.name]
		if unmeasured {
			measured = math.NaN()
		}
		x := r.add(part.name, measured, part.value)
		if unmeasured {
			x.Why = fmt.Sprintf("%s in the profile, not measured: it proves nothing of a calculation", origin)
		}
	}
	if len(lacks) > 0 { // a part of it: no sum to judge by
		r.add(Total, p.Total, math.NaN()).Why = "the sum of what was calculated lacks " + strings.Join(lacks, ", ")
	} else {
		r.add(Total, p.Total, total)
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
		d := calculated - measured
		x.Difference = known(d)
		if measured > 0 {
			x.Percent = known(100 * d / measured)
			x.Match = known(100 * min(measured, calculated) / max(measured, calculated))
		}
		x.judge(measured, calculated)
	}
	r.Components = append(r.Components, x)
	return &r.Components[len(r.Components)-1]
}

// judge holds a difference against what is expected.
func (x *Compared) judge(measured, calculated float64) {
	switch {
	case measured < 0:
		x.Verdict = Outside
		x.Why = fmt.Sprintf("what was measured is negative, %.3g: it was found by difference, and the other components are too large by that much together", measured)
	case x.Expected == nil:
		x.Verdict, x.Why = Outside, "nothing general is known of it"
		if measured == calculated {
			x.Verdict = Within
		}
	case measured == 0 && calculated == 0, x.Percent != nil && math.Abs(*x.Percent) <= x.Expected.Variance*(1+1e-9):
		x.Verdict = Within
	default:
		x.Verdict = Outside
	}
}

func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// decimalShare is what a GiB is more than a GB, in percent.
const decimalShare = 7.374

// recommend says in words what a difference may come from.
func (r *Comparison) recommend(p Profile) {
	say := func(format string, args ...any) {
		r.Recommendations = append(r.Recommendations, fmt.Sprintf(format, args...))
	}
	for _, x := range r.Components {
		if x.Verdict != Outside || x.Percent == nil {
			continue
		}
		percent, high := *x.Percent, *x.Percent > 0
		at := fmt.Sprintf("%s: calculated %s (±%.0f %% is expected)", words[x.Name], tooMuch(percent), expectedOf(x))
		switch {
		case x.Name == Weights && math.Abs(percent-decimalShare) < 1:
			say("%s, just as much as GB (10^9) differ from GiB (2^30); give --calc-unit GB if the calculator counts in GB", at)
		case x.Name == Weights && near2(percent, 100) || x.Name == Weights && near2(percent, -50):
			say("%s, a factor of two: check the type of the weights (16 against 8 or 32 bits)", at)
		case x.Name == Weights && high:
			say("%s; check the parameters and the type; tied embeddings count once, and quantised weights have scales beside them but fewer bits", at)
		case x.Name == Weights:
			say("%s; check the parameters and the type; scales, what isn't quantised (embedding, head, norms) and copies on several devices add to them", at)
		case x.Name == KVReserved && high:
			say("%s; check grouped-query attention (key-value heads, not heads), the sliding window, and that what is measured is reserved and not just used", at)
		case x.Name == KVReserved:
			say("%s; check the type of keys and values, the batch, and whether the engine reserves for its whole context (llama.cpp, WebLLM, vLLM) and not for the text", at)
		case x.Name == Activation:
			say("%s; it grows with the tokens that are computed at a time (prompt × batch, or the chunk), with the feed-forward part's width, and with the vocabulary where logits of all tokens are kept", at)
		case x.Name == Framework && high:
			say("%s; what the calculator counts as the framework's (contexts, graphs) may be among activations here",
				at)
		case x.Name == Framework:
			say("%s; a GPU's context, captured graphs, the allocator's rounding and memory pools are the framework's",
				at)
		}
	}
	r.remark(p, say)
}

// tooMuch says how far off a calculation is.
func tooMuch(percent float64) string {
	switch {
	case percent > 300:
		return fmt.Sprintf("%.3g times as large as measured", 1+percent/100)
	case percent > 0:
		return fmt.Sprintf("%.1f %% too high", percent)
	}
	return fmt.Sprintf("%.1f %% too low", -percent)
}

func near2(a, b float64) bool { return math.Abs(a-b) < 5 }

func expectedOf(x Compared) float64 {
	if x.Expected == nil {
		return 0
	}
	return x.Expected.Variance
}

// remark is what holds whatever the differences are.
func (r *Comparison) remark(p Profile, say func(string, ...any)) {
	for _, x := range r.Components {
		switch {
		case x.Verdict == NotMeasured && x.Why == "" && x.Name != Total && x.Calculated != nil:
			say("%s: not measured in this profile, so that the calculation stands unproven there", words[x.Name])
		case x.Why != "" && x.Name != MultiGPU:
			say("%s: %s", words[x.Name], x.Why)
		}
	}
	if !math.IsNaN(p.KVUsed) && !math.IsNaN(p.KV) && p.KVUsed < p.KV {
		say("of the KV cache %.3g of %.3g was used: compare with what is reserved, if the calculator means the whole context, else with what is used", p.KVUsed, p.KV)
	}
	if len(r.Recommendations) == 0 {
		say("every component that can be compared is as near as is expected: nothing is to be adjusted")
	}
}

// words are the components' names for sentences.
var words = map[string]string{Weights: "model weights", KVReserved: "KV cache", Activation: "activations",
	Framework: "framework overhead",
	MultiGPU:  "multi-GPU overhead", Total: "total"}
