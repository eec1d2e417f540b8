package estimate

import (
	"maps"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/predict/layout"
)

// weigh predicts the weights.
func (e *Estimate) weigh(h held) (Component, error) {
	m, s, f := e.Model, e.Setup, h.format
	e.DTypes.Activations, e.mapped = h.computes, h.mapped
	inOneType := func(n int64, name, how string) (Component, error) {
		e.DTypes.Weights, e.ByFormat = name, map[string]int64{name: n}
		return exact(Weights, n, name, how, m.Trust), e.possible(n)
	}
	if h.made != nil {
		e.other = true
		return inOneType(h.made.bytes, h.made.name, h.made.how)
	}
	if m.Stored != nil && s.Quantization == "" && (s.DType == "" || m.Quantized != nil) {
		var sum int64
		for _, n := range h.types {
			sum += n
		}
		name := modelsize.Dominant(h.types)
		whole := exact(Weights, sum+h.twice, name, "tensor sizes in the model's files"+h.how, High)
		e.other = h.how != ""
		e.DTypes.Weights, e.ByFormat = name, h.types
		e.extra = e.replicated(func(v hfconfig.Weight) int64 {
			return int64(float64(v.Values()) * float64(sum) / float64(max(m.Parameters, 1)))
		})
		return whole, e.possible(sum)
	}
	e.ByFormat = map[string]int64{}
	var sum int64
	for _, v := range m.Weights {
		b := f.Bytes(v)
		sum, e.ScaleBytes = sum+b.Sum(), e.ScaleBytes+b.Scales
		e.ByFormat[f.Name] += b.Values + b.Scales
		e.ByFormat[f.Plain.Name] += b.Plain
	}
	maps.DeleteFunc(e.ByFormat, func(_ string, n int64) bool { return n == 0 })
	e.extra = e.replicated(func(v hfconfig.Weight) int64 { return f.Bytes(v).Sum() })
	e.DTypes.Weights, e.DTypes.Scales = f.Name, f.Scales
	how := "calculated from the architecture and the dtype"
	if m.Source == "numbers" {
		how = "--model-params × bytes per parameter"
	}
	whole := exact(Weights, sum, f.Name, how, m.Trust)
	if f.Rough {
		whole = scaled(Weights, float64(sum), f.Low, f.High, f.Name,
			how+": mixed types by the quantiser's rule", worse(m.Trust, Medium))
	} else if m.Trust == Low {
		whole = scaled(Weights, float64(sum), 0.95, 1.1, f.Name, how, Low)
	}
	return whole, e.possible(sum)
}

// ofGGUF reports whether the weights come from a GGUF, by the model or by a format that only GGUFs have.
func (e *Estimate) ofGGUF() bool {
	if name := strings.ToLower(e.Setup.Quantization); name != "" {
		return layout.IsMixture(name)
	}
	return e.Model.GGUF()
}

// dequantises begins what says to which dtype a GGUF's weights are dequantised.
const dequantises = "parameters × bytes: the engine dequantises the GGUF to "

// dequantised returns the weights of a GGUF in the dtype of everything unquantised, f32 unless one is given.
func (e *Estimate) dequantised() *made {
	as := layout.Float32
	if name := e.Setup.DType; name != "" && name != "auto" {
		as = e.plain
	}
	return &made{as.Size(1, e.Model.Parameters), as.Name, dequantises + as.Name}
}

// computesGGUF returns the dtype of activations where a GGUF is dequantised: f32 unless another one is given.
func (e *Estimate) computesGGUF() string {
	if e.ofGGUF() && e.Setup.DType == "" {
		return "f32"
	}
	return e.computes()
}

// replicated returns the bytes that all devices together have beyond one copy.
func (e *Estimate) replicated(of func(hfconfig.Weight) int64) int64 {
	t := int64(e.Setup.TensorParallel)
	if t == 1 || e.runtime().device.layers {
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
