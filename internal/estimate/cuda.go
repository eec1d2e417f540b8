package estimate

import (
	"fmt"
	"maps"

	"llmparity/internal/engine"
)

// VLLM and Transformers are engines that llmparity does not run.
var (
	VLLM = &engine.Memory{Name: "vllm", Title: "vLLM", Runtime: engine.VLLM, FourBits: "awq",
		Program: engine.Program{Bytes: 0.9 * gib, Devices: true, Low: 0.4, High: 2.5,
			How: "a CUDA context and captured graphs on each device: a rule of thumb; host memory is not in it"}}
	Transformers = &engine.Memory{Name: "transformers", Title: "transformers", Runtime: engine.Torch, FourBits: "nf4",
		Program: engine.Program{Bytes: 0.6 * gib, Devices: true, Low: 0.5, High: 2,
			How: "a CUDA context, cuBLAS's workspace and PyTorch's rounding on each device: a rule of thumb; on a CPU Python and PyTorch take about as much"}}
)

// transformersPeak is at the prompt: all its tokens go through a layer at a time.
func (e *Estimate) transformersPeak() Component {
	m := e.Model
	h, i, q, kv := m.sizes()
	b, tokens := width(e.DTypes.Activations), float64(e.Setup.InputLen)*float64(e.Sequences)
	logits := float64(m.Vocab) * float64(e.Sequences) * (b + 4)
	peak := tokens * b * (2*h + max(3*i, q+2*kv+h))
	c := scaled(Activation, peak+logits, 0.5, 1.5, e.DTypes.Activations,
		fmt.Sprintf("at the prompt's %.0f tokens: two hidden states and the larger of the feed-forward part's and attention's tensors; the last token's logits", tokens), Low)
	// An older version has the logits of every token, and an eager one the scores of every pair.
	c.High += int64(tokens * float64(m.Vocab) * (b + 4))
	return c
}

// vllmPeak is what vLLM finds in its trial with as many tokens as it computes at a time.
func (e *Estimate) vllmPeak() Component {
	m := e.Model
	h, i, q, kv := m.sizes()
	b, tokens, t := width(e.DTypes.Activations), float64(e.Setup.MaxBatched), float64(e.Setup.TensorParallel)
	const sampled = 256 // sequences that it samples for at a time
	logits := float64(m.Vocab) * sampled * 4 * 2
	peak := tokens*b*(2*h*t+max(2*i+i, q+2*kv+q)) + logits
	return scaled(Activation, peak, 0.3, 2, e.DTypes.Activations,
		fmt.Sprintf("a trial with %.0f tokens (--max-num-batched-tokens): two hidden states and a layer's widest tensors; logits of %d sequences", tokens, sampled), Low)
}

// upFront is vLLM's way: what of --gpu-memory-utilization the rest leaves is the KV cache's, whether it is used or not.
func (e *Estimate) upFront(k cached, weights Component, others ...Component) Component {
	s := e.Setup
	if k.reserved.Method == "" {
		return k.reserved
	}
	if s.GPUMemoryGiB == 0 {
		e.warn("vLLM takes %.0f %% of each device's memory up front; --gpu-memory-gb says how much that is. Here stands what the sequences need", 100*s.GPUUtilization)
		return k.reserved
	}
	budget := s.GPUMemoryGiB * gib * s.GPUUtilization * float64(s.TensorParallel)
	low, best, high := budget-float64(weights.High), budget-float64(weights.Best), budget-float64(weights.Low)
	for _, o := range others {
		low, best, high = low-float64(o.High), best-float64(o.Best), high-float64(o.Low)
	}
	c := k.reserved
	c.Low, c.Best, c.High = atLeast0(low), atLeast0(best), atLeast0(high)
	c.Method = fmt.Sprintf("%.0f %% of %g GiB on %d devices, less the rest: taken up front", 100*s.GPUUtilization,
		s.GPUMemoryGiB, s.TensorParallel)
	c.Confidence = Medium
	switch need := float64(k.used.Best); {
	case best <= 0:
		e.warn("weights, activations and framework take %.2f GiB more than %.2f GiB: the model doesn't fit", -best/gib,
			budget/gib)
	case need > best:
		e.warn("the sequences need %.2f GiB of KV cache, %.2f GiB are left for it: about %d of %d run at a time, the others wait",
			need/gib, best/gib, int(best/need*float64(e.Sequences)), e.Sequences)
	}
	return c
}

// publishedWide tells whether the weights have 32 bits, of which vLLM makes 16.
func (e *Estimate) publishedWide() bool {
	n, ok := numberOf(e.Model.DType)
	wide := ok && n.name == "f32" || e.Model.DType == "" && e.Model.Stored["f32"] > 0
	return wide && e.Model.Source != "gguf" && e.runs(engine.VLLM) &&
		(e.Setup.DType == "" || e.Setup.DType == "auto")
}

// loaded is what an engine makes of the files' tensors: vLLM takes those of 32 bits in 16.
func (e *Estimate) loaded(f format) map[string]int64 {
	m := e.Model
	if !e.runs(engine.VLLM) || m.Source == "gguf" || m.Quantized != nil || m.Stored["f32"] == 0 ||
		f.plain.bits != 16 {
		return m.Stored
	}
	types := maps.Clone(m.Stored)
	types[f.plain.name] += types["f32"] / 2
	delete(types, "f32")
	return types
}
