package estimate

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
