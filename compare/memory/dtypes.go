package memory

import (
	"regexp"
	"strings"

	"llmparity/compare/evidence"
	"llmparity/internal/figure"
)

// DTypes are those of a cell's components; empty if unknown.
type DTypes struct {
	Weights     string `json:"weights,omitempty"`
	Activations string `json:"activations,omitempty"`
	KVCache     string `json:"kv_cache,omitempty"`
	Scales      string `json:"scales,omitempty"` // of quantised weights
}

// dtypes are those that the engine reports; for weights, else those of the file.
func (c *Cell) dtypes() DTypes {
	d := DTypes{Weights: c.Says("weights_dtype"), Activations: c.Says("activations_dtype"), KVCache: c.Says("kv_dtype")}
	if d.Weights == "" {
		d.Weights = c.Spec.Model.DType
	}
	if d.Activations == "" && c.Breakdown != nil &&
		evidence.Held(c.Breakdown.Load, figure.Workspaces).Method == evidence.EngineLog {
		d.Activations = "f32" // only llama.cpp and engines built on it have such logs, and they compute in f32
	}
	d.Scales = scalesOf(d.Weights)
	return d
}

var (
	mlcScales  = regexp.MustCompile(`^q[1-8](f16|f32|bf16)(?:_|$)`)
	ggufScales = regexp.MustCompile(`^(?:i?q[1-8]_|tq[12]_)`)
)

// scalesOf gives the dtype of the scales of quantised weights; empty if none or unknown.
func scalesOf(weights string) string {
	name := strings.ToLower(weights)
	if m := mlcScales.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	switch {
	case ggufScales.MatchString(name), name == "awq", name == "gptq":
		return "f16"
	case name == "mxfp4":
		return "e8m0"
	case name == "nvfp4":
		return "e4m3"
	}
	return ""
}

// sameNumbers tells whether two names mean one dtype: float32 in MLC is f32 in llama.cpp.
func sameNumbers(a, b string) bool {
	short := func(s string) string { return strings.Replace(strings.ToLower(s), "float", "f", 1) }
	return short(a) == short(b)
}

// widthOf gives the bytes of an element of a KV cache; 0 if the dtype is unknown.
func widthOf(dtype string) float64 {
	switch strings.ToLower(dtype) {
	case "f32", "float32":
		return 4
	case "f16", "bf16", "float16", "bfloat16":
		return 2
	case "q8_0":
		return 34.0 / 32
	case "q4_0":
		return 18.0 / 32
	case "fp8", "fp8_e4m3", "fp8_e5m2":
		return 1
	}
	return 0
}

// SameDType tells whether two dtypes have the same size.
func SameDType(a, b string) bool { return widthOf(a) == widthOf(b) || sameNumbers(a, b) }
