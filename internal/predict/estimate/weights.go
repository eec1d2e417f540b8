package estimate

import (
	"maps"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
)

// weigh predicts the weights.
func (e *Estimate) weigh(f format) (Component, error) {
	m, s := e.Model, e.Setup
	inOneType := func(n int64, name, how string) (Component, error) {
		e.DTypes.Weights, e.ByFormat = name, map[string]int64{name: n}
		return exact(Weights, n, name, how, m.Trust), e.possible(n)
	}
	if e.packed = e.asIs(); e.packed != nil && s.Weights == mlc.Requantized {
		return inOneType(sum(e.packed), s.Weights, "the tensors of WebLLM's package, requantized")
	} else if e.packed != nil {
		return inOneType(sum(e.packed), m.DType, "the tensors of WebLLM's package, in the types of the file")
	}
	if as, how, ok := e.dequantised(); ok {
		return inOneType(as.Size(1, m.Parameters), as.Name, how)
	}
	if m.Stored != nil && s.Quantization == "" && (s.DType == "" || m.Quantized != nil) {
		var sum int64
		types := e.loaded(f)
		for _, n := range types {
			sum += n
		}
		name := modelsize.Dominant(types)
		whole := exact(Weights, sum, name, "tensor sizes in the model's files", High)
		e.copies(&whole)
		e.DTypes.Weights, e.ByFormat = name, types
		e.extra = e.replicated(func(v hfconfig.Weight) int64 {
			return int64(float64(v.Values()) * float64(sum) / float64(max(m.Parameters, 1)))
		})
		return whole, e.possible(sum)
	}
	e.ByFormat = map[string]int64{}
	var sum int64
	for _, v := range m.Weights {
		b := f.bytes(v)
		sum, e.ScaleBytes = sum+b.sum(), e.ScaleBytes+b.scales
		e.ByFormat[f.name] += b.values + b.scales
		e.ByFormat[f.plain.Name] += b.plain
	}
	maps.DeleteFunc(e.ByFormat, func(_ string, n int64) bool { return n == 0 })
	e.extra = e.replicated(func(v hfconfig.Weight) int64 { return f.bytes(v).sum() })
	e.DTypes.Weights, e.DTypes.Scales = f.name, f.scales
	how := "calculated from the architecture and the dtype"
	if m.Source == "numbers" {
		how = "--model-params × bytes per parameter"
	}
	whole := exact(Weights, sum, f.name, how, m.Trust)
	if f.rough {
		whole = scaled(Weights, float64(sum), f.low, f.high, f.name,
			how+": mixed types by the quantiser's rule", worse(m.Trust, Medium))
	} else if m.Trust == Low {
		whole = scaled(Weights, float64(sum), 0.95, 1.1, f.name, how, Low)
	}
	return whole, e.possible(sum)
}

// ofGGUF reports whether the weights come from a GGUF, by the model or by a format that only GGUFs have.
func (e *Estimate) ofGGUF() bool {
	if name := strings.ToLower(e.Setup.Quantization); name != "" {
		_, ok := mixtures()[name]
		return ok
	}
	return e.Model.Source == "gguf"
}

// keepsTypes reports whether the engine is WebLLM with a package that keeps the types of a GGUF's matrices.
func (e *Estimate) keepsTypes() bool {
	return e.runs(engine.MLC) && slices.Contains([]string{"", mlc.AsIs, mlc.Requantized}, e.Setup.Weights)
}

// asIs returns the sizes of the tensors of WebLLM's package of a GGUF, if it keeps the types of the matrices.
func (e *Estimate) asIs() []int64 {
	if as, _, ok := e.dequantised(); ok && e.keepsTypes() {
		if e.Setup.Weights == mlc.Requantized {
			return e.Model.AsIs[mlc.Requantized+" "+as.Name]
		}
		return e.Model.AsIs[as.Name]
	}
	return nil
}

// dequantised returns the dtype to which an engine dequantises a GGUF's weights; ok is false if it does not.
func (e *Estimate) dequantised() (as dtype.DType, how string, ok bool) {
	if !e.ofGGUF() || !e.runs(engine.MLC, engine.Torch) || e.keepsTypes() && e.Setup.Quantization != "" {
		return as, "", false
	}
	as = float32s
	if e.Setup.Weights == "f16" && e.runs(engine.MLC) {
		return float16s, "parameters × bytes: the weights are rounded to f16", true
	}
	if e.Setup.Weights == "f32" && e.runs(engine.MLC) {
		return as, "parameters × bytes: the engine dequantises the GGUF to f32", true
	}
	if name := e.Setup.DType; name != "" && name != "auto" {
		as = e.plain
	}
	return as, "parameters × bytes: the engine dequantises the GGUF to " + as.Name, true
}

// replicated returns the bytes that all devices together have beyond one copy.
func (e *Estimate) replicated(of func(hfconfig.Weight) int64) int64 {
	t := int64(e.Setup.TensorParallel)
	if t == 1 || !e.runs(engine.VLLM, engine.Torch) {
		return 0
	}
	var extra int64
	for _, w := range e.Model.Weights {
		switch kv := int64(e.Model.KVHeads); {
		case w.Split == hfconfig.Replicated && w.Part != hfconfig.Whole:
			extra += of(w) * (t - 1)
		case w.Split == hfconfig.ByKVHead && kv > 0 && kv < t:
			extra += of(w) * (t - kv) / kv
		}
	}
	return extra
}

// possible refuses impossible sums.
func (e *Estimate) possible(n int64) error {
	if n <= 0 || n > 1<<54 {
		return fault.New(fault.BadModel, "check the sizes", "%s: weights would need %d bytes", e.Model.Name, n)
	}
	return nil
}
