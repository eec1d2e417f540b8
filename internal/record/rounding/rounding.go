// Package rounding has how far apart log-probabilities of correct engines lie, by the arithmetic that they compute in.
//
// It knows arithmetic only: not whether a model is sensitive to it. A yardstick measured on a model replaces these
// numbers where there is one.
package rounding

import (
	"cmp"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/record"
)

// Arithmetic is what an engine computes in, as far as it moves log-probabilities.
type Arithmetic string

// The arithmetics.
const (
	Single      Arithmetic = "float32"
	HalfCache   Arithmetic = "a float16 KV cache"
	Half        Arithmetic = "float16 activations"
	EightCache  Arithmetic = "an 8-bit KV cache"
	FourCache   Arithmetic = "a KV cache of 4 or 5 bits"
	Eight       Arithmetic = "8-bit activations"
	EightWide   Arithmetic = "8-bit activations in blocks of 256"
	Sines       Arithmetic = "sines of a shader"
	unspecified Arithmetic = ""
	// HalfAttention is llama.cpp's flash attention, which converts keys, values and sums to float16 on a CPU, whatever
	// the cache has.
	HalfAttention Arithmetic = "float16 flash attention"
	// HalfGELU is ggml's GELU on a CPU, a table of float16 values.
	HalfGELU Arithmetic = "a float16 GELU"
)

// Row is what one arithmetic explains.
type Row struct {
	Arithmetic
	// Nats is how far apart the log-probabilities of one token may lie, in two correct engines of which one or both
	// compute so.
	Nats float64
	// Basis says where the number comes from.
	Basis string
}

// Table has all rows, the finest arithmetic first.
func Table() []Row {
	return []Row{
		{Single, 0.001, "measured"},
		{Sines, 0.05, "measured"},
		{HalfCache, 0.1, "measured"},
		{HalfAttention, 0.1, "measured"},
		{Half, 0.2, "measured"},
		{HalfGELU, 0.3, "measured"},
		{EightCache, 1, "measured"},
		{Eight, 1.5, "measured"},
		{EightWide, 1.5, "measured"},
		{FourCache, 10, "measured"},
	}
}

// Of returns the arithmetics of an engine by its reports, the finest first; nil if they are not known.
func Of(info *record.EngineInfo, device *record.Device, model record.Model) []Arithmetic {
	says := func(key string) string {
		if info == nil {
			return ""
		}
		return strings.ToLower(info.Policy[key])
	}
	computes := activations(says("activations_dtype"), cmp.Or(says("weights_dtype"), strings.ToLower(model.DType)))
	cached := cache(says("kv_dtype"))
	if computes == unspecified || cached == unspecified {
		return nil
	}
	out := []Arithmetic{computes, cached}
	if ggml := says("activations_dtype") == ""; ggml && strings.HasPrefix(model.Architecture, "gemma") {
		out = append(out, HalfGELU)
	}
	if flash := says("flash_attention"); flash == "on" || flash == "auto: enabled" {
		out = append(out, HalfAttention)
	}
	if shaderSines(info, device) {
		out = append(out, Sines)
	}
	return Sorted(out)
}

// shaderSines reports whether rotations are computed with sines of a shader, for which WGSL allows an error of 2⁻¹¹: in
// MLC's kernels, and perhaps in what a driver compiles for a GPU.
func shaderSines(info *record.EngineInfo, device *record.Device) bool {
	if device != nil && device.Class == record.GPU {
		return true
	}
	return info != nil && info.Library.ByMLC()
}

// Sorted puts arithmetics in the table's order, each once. float32 stands alone.
func Sorted(all []Arithmetic) (out []Arithmetic) {
	for _, r := range Table() {
		if slices.Contains(all, r.Arithmetic) {
			out = append(out, r.Arithmetic)
		}
	}
	if len(out) > 1 && out[0] == Single {
		out = out[1:]
	}
	return out
}

// activations returns the arithmetic of matrix products. Engines that report no dtype of activations convert them to
// what the weights have: ggml to 8 bits for blocks of integers.
func activations(reported, weights string) Arithmetic {
	switch d, _ := dtype.Named(cmp.Or(reported, weights)); {
	case d.Float() && d.Bits() == 32:
		return Single
	case d.Float() && d.Bits() == 16:
		return Half
	case reported == "" && strings.Contains(weights, "_k"):
		return EightWide
	case reported == "" && weights != "" && weights != "unknown":
		return Eight
	}
	return unspecified
}

// cache returns the arithmetic of a KV cache. Keys and values may have a dtype each, as in "K q8_0, V f16".
func cache(said string) Arithmetic {
	has := func(least, below float64) bool {
		return slices.ContainsFunc(strings.FieldsFunc(said, func(r rune) bool { return r == ',' || r == ' ' }),
			func(name string) bool {
				d, _ := dtype.Named(name)
				return d.Bits() >= least && d.Bits() < below
			})
	}
	switch {
	case has(16, 17):
		return HalfCache
	case has(4, 7):
		return FourCache
	case has(8, 9):
		return EightCache
	case has(32, 33):
		return Single
	}
	return unspecified
}

// Nats returns what the coarsest of some arithmetics explains; 0 if there is none.
func Nats(all []Arithmetic) (nats float64) {
	for _, r := range Table() {
		if slices.Contains(all, r.Arithmetic) {
			nats = max(nats, r.Nats)
		}
	}
	return nats
}

// Plural reports whether the words for all of them take a verb in the plural.
func Plural(all []Arithmetic) bool {
	return len(all) > 1 || len(all) == 1 && slices.Contains([]Arithmetic{Half, Eight, EightWide, Sines}, all[0])
}

// Words lists arithmetics: float16 activations and a float16 KV cache.
func Words(all []Arithmetic) string {
	var names []string
	for _, a := range all {
		names = append(names, string(a))
	}
	return strings.Join(names, " and ")
}
