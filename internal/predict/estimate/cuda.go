package estimate

import (
	"fmt"
	"maps"
	"slices"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
)

// VLLM and Transformers are engines that llmparity only predicts.
var (
	VLLM = &engine.Memory{Name: "vllm", Title: "vLLM", Runtime: engine.VLLM, FourBits: "awq",
		KVTypes: []string{"f16", "bf16", "fp8", "fp8_e5m2"},
		Program: engine.Program{Bytes: 0.9 * gib, Devices: true, Low: 0.4, High: 2.5,
			How: "rule of thumb: a CUDA context and captured graphs on each device; excludes main memory"}}
	Transformers = &engine.Memory{Name: "transformers", Title: "transformers", Runtime: engine.Torch, FourBits: "nf4",
		KVTypes: []string{"f32", "f16", "bf16", "int8"},
		Program: engine.Program{Bytes: 0.6 * gib, Devices: true, Low: 0.5, High: 2,
			How: "rule of thumb: a CUDA context, cuBLAS workspace and PyTorch's rounding on each device; similar on a CPU"}}
)

// transformersPeak predicts the prefill: all prompt tokens pass a layer at a time.
func (e *Estimate) transformersPeak() Component {
	m := e.Model
	h, i, q, kv := sizes(m)
	b, tokens := width(e.DTypes.Activations), float64(e.Setup.InputLen)*float64(e.Sequences)
	logits := float64(m.Vocab) * float64(e.Sequences) * (b + 4)
	peak := tokens * b * (2*h + max(3*i, q+2*kv+h))
	c := scaled(Activation, peak+logits, 0.5, 1.5, e.DTypes.Activations,
		fmt.Sprintf("prefill of %.0f tokens: two hidden states, tensors of attention or the feed-forward part "+
			"(whichever are larger), logits of the last token", tokens), Low)
	// Older versions keep the logits of every token; eager attention keeps the scores of every pair.
	c.High += int64(tokens * float64(m.Vocab) * (b + 4))
	return c
}

// vllmPeak predicts vLLM's profiling run with a full batch of tokens.
func (e *Estimate) vllmPeak() Component {
	m := e.Model
	h, i, q, kv := sizes(m)
	b, tokens, t := width(e.DTypes.Activations), float64(e.Setup.MaxBatched), float64(e.Setup.TensorParallel)
	const sampled = 256 // sequences sampled at a time
	logits := float64(m.Vocab) * sampled * 4 * 2
	peak := tokens*b*(2*h*t+max(2*i+i, q+2*kv+q)) + logits
	return scaled(Activation, peak, 0.3, 2, e.DTypes.Activations,
		fmt.Sprintf("profiling run with %.0f tokens (--max-num-batched-tokens): two hidden states, the widest tensors of "+
			"a layer, logits of %d sequences", tokens, sampled), Low)
}

// upFront gives vLLM's KV cache all the memory that --gpu-memory-utilization allows and the other components leave.
func (e *Estimate) upFront() {
	s := e.Setup
	at := slices.IndexFunc(e.Components, func(c Component) bool { return c.Name == KVReserved })
	if at < 0 {
		return
	}
	if s.GPUMemoryGiB == 0 {
		e.warn("vLLM reserves %.0f%% of each device's memory; without --gpu-memory-gb, the KV cache is what the sequences need", 100*s.GPUUtilization)
		return
	}
	budget := s.GPUMemoryGiB * gib * s.GPUUtilization * float64(s.TensorParallel)
	low, best, high := budget, budget, budget
	for _, o := range e.Components {
		if o.Name != KVReserved && o.Name != KVUsed {
			low, best, high = low-float64(o.High), best-float64(o.Best), high-float64(o.Low)
		}
	}
	atLeast0 := func(v float64) int64 { return int64(max(v, 0)) }
	c := &e.Components[at]
	c.Low, c.Best, c.High = atLeast0(low), atLeast0(best), atLeast0(high)
	c.Method = fmt.Sprintf("%.0f%% of %g GiB on %d devices, less the rest: reserved at start", 100*s.GPUUtilization,
		s.GPUMemoryGiB, s.TensorParallel)
	c.Confidence = Medium
	switch need := float64(e.Component(KVUsed).Best); {
	case best <= 0:
		e.warn("weights, activations and the engine itself exceed %.2f GiB by %.2f GiB: the model does not fit",
			budget/gib, -best/gib)
	case need > best:
		e.warn("the sequences need %.2f GiB of KV cache, but %.2f GiB are left: about %d of %d run at a time",
			need/gib, best/gib, int(best/need*float64(e.Sequences)), e.Sequences)
	}
}

// publishedWide reports whether vLLM converts 32-bit weights to 16 bits.
func (e *Estimate) publishedWide() bool {
	wide := dtype.Canonical(e.Model.DType) == "f32" || e.Model.DType == "" && e.Model.Stored["f32"] > 0
	return wide && e.Model.Source != "gguf" && e.runs(engine.VLLM) &&
		(e.Setup.DType == "" || e.Setup.DType == "auto")
}

// loaded returns the weights by type after loading: vLLM converts 32-bit tensors to 16 bits.
func (e *Estimate) loaded(f format) map[string]int64 {
	m := e.Model
	if !e.runs(engine.VLLM) || m.Source == "gguf" || m.Quantized != nil || m.Stored["f32"] == 0 ||
		f.plain.Bits() != 16 {
		return m.Stored
	}
	types := maps.Clone(m.Stored)
	types[f.plain.Name] += types["f32"] / 2
	delete(types, "f32")
	return types
}
