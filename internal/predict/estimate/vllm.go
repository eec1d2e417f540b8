package estimate

import (
	"fmt"
	"maps"

	"llmparity/internal/dtype"
	"llmparity/internal/engine"
	"llmparity/internal/models/hfconfig"
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

// vllmRuntime reserves a share of each GPU's memory.
var vllmRuntime = &Runtime{name: "vllm", device: onlyGPU, rules: vllm{},
	assumed:  func(_ Model, s Setup) bool { return s.GPUMemoryGiB > 0 || Own[VLLMSettings](s).GPUUtilization > 0 },
	replaces: map[string]string{"f32": "bf16"},
	reserves: fmt.Sprintf("%%[1]s in blocks of %d tokens × %%[3]s", vllmBlock),
	settings: []Setting{
		field(func(s *VLLMSettings) *int { return &s.MaxBatched }, Setting{Flag: "max-num-batched-tokens",
			Help: "vLLM: tokens computed at once (default 8192)", Most: 1 << 24, Or: 8192}),
		field(func(s *VLLMSettings) *float64 { return &s.GPUUtilization }, Setting{Flag: "gpu-memory-utilization",
			Help: "vLLM: share of GPU memory that vLLM reserves (default 0.9)", Most: 1, Or: 0.9}),
	}}

type vllm struct{ usual }

func (vllm) choose(e *Estimate) {
	m, given := e.Model, e.Setup.DType
	wide := dtype.Canonical(m.DType) == "f32" || m.DType == "" && m.Stored["f32"] > 0
	if wide && !m.GGUF() && (given == "" || given == "auto") {
		e.warn("the weights are published in float32; vLLM loads them in 16 bits unless --dtype float32 is given")
	}
	e.share = Own[VLLMSettings](e.Setup).GPUUtilization
}

// weights has 32-bit tensors in 16 bits.
func (vllm) weights(e *Estimate) (held, error) {
	h, err := usual{}.weights(e)
	m, plain := e.Model, h.format.Plain
	if err != nil || m.GGUF() || m.Quantized != nil || m.Stored["f32"] == 0 || plain.Bits() != 16 {
		return h, err
	}
	h.types = maps.Clone(m.Stored)
	h.types[plain.Name] += m.Stored["f32"] / 2
	delete(h.types, "f32")
	return h, nil
}

func (vllm) cache(e *Estimate, c hfconfig.Cache) (reserved, used int64) {
	seen := e.seen(c)
	return padded(seen, vllmBlock), seen
}

// activations are those of the profiling run with a full batch of tokens.
func (vllm) activations(e *Estimate) (Component, touched) {
	m := e.Model
	h, i, q, kv := sizes(m)
	b, t := width(e.DTypes.Activations), float64(e.Setup.TensorParallel)
	tokens := float64(Own[VLLMSettings](e.Setup).MaxBatched)
	const sampled = 256 // sequences sampled at a time
	logits := float64(m.Vocab) * sampled * 4 * 2
	peak := tokens*b*(2*h*t+max(2*i+i, q+2*kv+q)) + logits
	return scaled(Activation, peak, 0.3, 2, e.DTypes.Activations,
		fmt.Sprintf("profiling run with %.0f tokens (--max-num-batched-tokens): two hidden states, the widest tensors of "+
			"a layer, logits of %d sequences", tokens, sampled), Low), touched{}
}
