package estimate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/predict/layout"
)

// VLLM is an engine that llmparity only predicts.
var VLLM = &engine.Memory{Name: "vllm", Title: "vLLM", Runtime: "vllm", FourBits: "awq",
	KVTypes: []string{"f16", "bf16", "fp8", "fp8_e5m2"},
	Program: engine.Program{Bytes: 0.9 * gib, Devices: true, Low: 0.4, High: 2.5,
		How: "rule of thumb: a CUDA context and captured graphs on each device; excludes main memory"}}

// VLLMSettings are the settings of vLLM.
type VLLMSettings struct {
	GPUUtilization float64 // share of each GPU's memory that is reserved
	MaxBatched     int     // tokens computed at a time
}

const vllmBlock = 16 // tokens, the unit of the KV cache

// vllm reserves a share of each GPU's memory, and gives the KV cache all that the rest leaves.
type vllm struct{ usual }

func (vllm) traits() traits { return traits{name: "vllm", wholly: true} }

func (vllm) limits(s Setup) error {
	return cmp.Or(modelsize.Within("--max-num-batched-tokens", s.MaxBatched, 1<<24),
		share("--gpu-memory-utilization", s.GPUUtilization, 1))
}

func (vllm) suits(_ Model, s Setup) bool { return s.GPUMemoryGiB > 0 || s.GPUUtilization > 0 }

func (vllm) choose(e *Estimate) {
	s := &e.Setup
	wide := dtype.Canonical(e.Model.DType) == "f32" || e.Model.DType == "" && e.Model.Stored["f32"] > 0
	if wide && !e.Model.GGUF() && (s.DType == "" || s.DType == "auto") {
		e.warn("the weights are published in float32; vLLM loads them in 16 bits unless --dtype float32 is given")
	}
	s.MaxBatched, s.GPUUtilization = cmp.Or(s.MaxBatched, 8192), cmp.Or(s.GPUUtilization, 0.9)
}

func (vllm) unquantised(name string, given bool) string {
	if !given && dtype.Canonical(name) == "f32" {
		return "bf16"
	}
	return name
}

// loaded has 32-bit tensors in 16 bits.
func (vllm) loaded(e *Estimate, f layout.Format) (types map[string]int64, twice int64, how string) {
	m := e.Model
	if m.GGUF() || m.Quantized != nil || m.Stored["f32"] == 0 || f.Plain.Bits() != 16 {
		return m.Stored, 0, ""
	}
	types = maps.Clone(m.Stored)
	types[f.Plain.Name] += types["f32"] / 2
	delete(types, "f32")
	return types, 0, ""
}

func (vllm) slots(e *Estimate, c hfconfig.Cache) (reserved, used int64) {
	seen := e.seen(c)
	return padded(seen, vllmBlock), seen
}

func (vllm) reserves(perToken, _, sequences string) string {
	return perToken + fmt.Sprintf(" in blocks of %d tokens × %s", vllmBlock, sequences)
}

// activations are those of the profiling run with a full batch of tokens.
func (vllm) activations(e *Estimate) Component {
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

func (vllm) share(s Setup) float64 { return s.GPUUtilization }

// settle gives the KV cache all the memory that --gpu-memory-utilization allows and the other components leave.
func (vllm) settle(e *Estimate) {
	s := e.Setup
	at := slices.IndexFunc(e.Components, func(c Component) bool { return c.Name == KVReserved })
	if at < 0 {
		return
	}
	if s.GPUMemoryGiB == 0 {
		e.warn("vLLM reserves %.0f%% of each device's memory; without --gpu-memory-gb, the KV cache is what the sequences need",
			100*s.GPUUtilization)
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

func (vllm) onGPU(Setup) bool { return true }

func (vllm) rooms(e Estimate, _ Machine, rooms map[string]Room) {
	s := e.Setup
	if s.GPUMemoryGiB > 0 {
		rooms[VRAM] = Room{Free: int64(s.GPUMemoryGiB * float64(s.TensorParallel) * s.GPUUtilization * gib),
			How: fmt.Sprintf("%.0f%% of --gpu-memory-gb, which vLLM reserves", 100*s.GPUUtilization)}
	}
}
