package estimate

import "fmt"

// torchRuntime is PyTorch with Hugging Face's transformers.
var torchRuntime = &Runtime{name: "torch", device: gpuOrCPU, rules: torch{}, expands: true,
	take:    func(s *Setup, settings map[string]string) { s.OnCPU = s.OnCPU || settings["device"] == "cpu" },
	starts:  true,
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

// activations are the tensors that Python's functions hold at once in a prefill: of each token the embedding, the input
// of the layer, the residual and its norm, the rotation, and those of the feed-forward part or of attention. The
// logits, and those in single precision, come later.
func (torch) activations(e *Estimate) (Component, touched) {
	h, i, q, kv := sizes(e.Model)
	b, tokens := width(e.DTypes.Activations), float64(e.Setup.InputLen)*float64(e.Sequences)
	logits := float64(e.Model.Vocab) * (b + 4)
	peak := max(tokens*b*(4*h+2*float64(e.Model.HeadDim)+max(3*i, 4*q+2*kv-h)), float64(e.Sequences)*logits)
	c := scaled(Activation, peak, 0.5, 1.5, e.DTypes.Activations,
		fmt.Sprintf("prefill of %.0f tokens: four hidden states, the rotation and tensors of attention or the "+
			"feed-forward part (whichever are larger), or logits of the last token", tokens), Low)
	// Older versions keep the logits of every token; eager attention keeps the scores of every pair.
	c.High += int64(tokens * logits)
	return c, touched{}
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
			"PSS that a model adds to Python with torch on a CPU, beside its tensors: tokenizer, buffers of kernels", Medium),
		[]string{"weights read into memory", "the KV cache, which grows with the text", "activations",
			"what a model adds to Python beside its tensors"}
}
