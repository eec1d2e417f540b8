package estimate

import (
	"llmparity/internal/engine"
)

// Transformers is an engine that llmparity only predicts.
var Transformers = &engine.Memory{Name: "transformers", Title: "transformers", Runtime: "torch", FourBits: "nf4",
	KVTypes: []string{"f32", "f16", "bf16", "int8"},
	Program: engine.Program{Bytes: 0.6 * gib, Devices: true, Low: 0.5, High: 2,
		How: "rule of thumb: a CUDA context, cuBLAS workspace and PyTorch's rounding on each device; similar on a CPU"}}

// torchRuntime is PyTorch with Hugging Face's transformers.
var torchRuntime = &Runtime{name: "torch", device: gpuOrCPU, rules: torch{}, expands: true,
	assumed: func(Model, Setup) bool { return true }}

type torch struct{ usual }

// weights has those of a GGUF dequantised.
func (torch) weights(e *Estimate) (held, error) {
	h, err := usual{}.weights(e)
	if e.ofGGUF() {
		h.made, h.computes = e.dequantised(), e.computesGGUF()
	}
	return h, err
}
