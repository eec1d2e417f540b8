package estimate

import (
	"fmt"

	"llmparity/internal/models/hfconfig"
)

// onnxRuntime is ONNX Runtime in a browser, in WebAssembly or on WebGPU.
var onnxRuntime = &Runtime{name: "onnx", rules: onnxWeb{}, lacks: map[string]string{"bf16": "f32"},
	device:   device{single: true, places: inPage{}, flags: []string{"ram-gb"}},
	reserves: "%[1]s × tokens, twice: each token's step writes the KV cache into new tensors"}

// inPage has the limit of WebAssembly.
type inPage struct{ anywhere }

func (inPage) place(s *Setup, _ Machine) error {
	s.OnGPU = s.GPUMemoryGiB > 0
	return nil
}

func (inPage) needs(e Estimate) []Need {
	if e.Setup.OnGPU {
		return nil
	}
	n := Need{Place: Wasm, Hard: true, What: "weights, KV cache and activations, with " + e.Setup.Engine.Title}
	n.add(onnxHeap, e.Component(Weights))
	n.add(1, e.Component(KVReserved), e.Component(Activation))
	return []Need{n}
}

type onnxWeb struct{ usual }

// weights has those of a GGUF as ONNX: matrices in Q4_0 with scales in the dtype of activations, all else in that
// dtype.
func (onnxWeb) weights(e *Estimate) (held, error) {
	h, err := usual{}.weights(e)
	if !e.ofGGUF() {
		return h, err
	}
	h.made, h.computes = e.dequantised(), e.computesGGUF()
	kept := e.Model.Stored["q4_0"]
	if kept == 0 || e.Setup.Quantization != "" {
		return h, err
	}
	const block, stored, values = 18, 16, 32
	wide := int64(width(h.computes))
	rest := e.Model.Parameters - kept/block*values
	h.made = &made{kept/block*(stored+wide) + rest*wide, e.Model.DType,
		"blocks of Q4_0 with scales in " + h.computes + "; parameters × bytes for other tensors"}
	return h, err
}

func (onnxWeb) cache(e *Estimate, c hfconfig.Cache) (reserved, used int64) {
	seen := e.seen(c)
	if c.Window > 0 { // it keeps what is outside
		seen = e.Tokens
	}
	return 2 * seen, seen
}

// activations are those of a prefill in one piece, with the scores of attention in WebAssembly.
func (onnxWeb) activations(e *Estimate) (Component, touched) {
	m := e.Model
	h, i, q, kv := sizes(m)
	b, tokens := width(e.DTypes.Activations), float64(e.Setup.InputLen)
	peak := tokens*b*(2*h+max(3*i, q+2*kv+h)) + 4*tokens*tokens*float64(m.Heads) + float64(m.Vocab)*(b+4)
	return scaled(Activation, peak, 0.5, 2, e.DTypes.Activations, fmt.Sprintf("prefill of %.0f tokens at once: two hidden "+
		"states, tensors of attention or the feed-forward part, scores, logits of the last token", tokens), Low), touched{}
}

// Memory of the page beside the model, measured with Chromium 156.
const (
	onnxPage   = 235 * mib // transformers.js, ONNX Runtime's WebAssembly and its compiled code
	onnxCopies = 1.2       // of the weights: in array buffers until garbage collection, and packed in WebAssembly
	onnxHeap   = 1.6       // WebAssembly's size for weights of 1
)

func (onnxWeb) itself(e *Estimate, weights int64) (Component, []string) {
	best := onnxPage + pageToken*float64(e.Model.Vocab) + onnxCopies*float64(weights)
	grows := []string{"weights, KV cache and activations in WebAssembly",
		"the page, and copies of the weights in transit"}
	return scaled(Framework, best, 0.6, 1.4, "", "the page with transformers.js and ONNX Runtime, and a copy of the weights "+
		"that is not collected yet; measured with Chromium 156", Medium), grows
}
