package estimate

// torchRuntime is PyTorch with Hugging Face's transformers.
var torchRuntime = &Runtime{name: "torch", device: gpuOrCPU, rules: torch{}, expands: true,
	take:    func(s *Setup, settings map[string]string) { s.OnCPU = s.OnCPU || settings["device"] == "cpu" },
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

// What a model adds to Python that has imported torch and transformers, beside its tensors, on a CPU: measured with the
// tiny model and SmolLM2.
const (
	torchProgram = 23 * mib
	torchToken   = 640 // bytes of the tokenizer, for each token
)

// itself is the rule of thumb on a GPU.
func (torch) itself(e *Estimate, weights int64) (Component, []string) {
	if !e.Setup.OnCPU || e.Setup.Engine.Before == 0 {
		return usual{}.itself(e, weights)
	}
	return scaled(Framework, torchProgram+torchToken*float64(e.Model.Vocab), 0.5, 2, "",
		"PSS that a model adds to Python with torch on a CPU, beside its tensors: tokenizer, buffers of kernels", Medium), nil
}
