package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
	"llmparity/internal/predict/layout"
)

// MLCSettings are the settings of WebLLM.
type MLCSettings struct {
	PrefillChunk int    // prompt tokens computed at a time
	Weights      string // those of a GGUF's package: as-is (or ""), f32 or f16
}

func (e *Estimate) mlc() MLCSettings { return Own[MLCSettings](e.Setup) }

const mlcPage = 16 // tokens, the unit of the KV cache

// mlcRuntime is MLC in a browser, which runs packages: those of a GGUF are written first. WebGPU has no bf16.
var mlcRuntime = &Runtime{name: "mlc", device: webGPU(buffers{1 << 30, 1 << 28}), rules: mlcWeb{},
	lacks: map[string]string{"bf16": "f16"},
	reserves: fmt.Sprintf("%%[1]s × the context window in pages of %d tokens, rounded up, and one page more; reserved at load",
		mlcPage),
	settings: []Setting{field(func(s *MLCSettings) *int { return &s.PrefillChunk }, Setting{Key: "prefill_chunk",
		Flag: "prefill-chunk", Most: 1 << 20,
		Help: "WebLLM: prompt tokens computed at once (default: the package's value, or 128)"})}}

type mlcWeb struct{}

func (mlcWeb) choose(e *Estimate) {
	s := &e.Setup
	if e.Sequences > 1 {
		e.warn("%s processes one sequence at a time: %d requests wait for one another", s.Engine.Title, e.Sequences)
		e.Sequences = 1
	}
	Change(s, func(of *MLCSettings) {
		of.PrefillChunk = cmp.Or(of.PrefillChunk, e.Model.Chunk, min(s.Context, 128))
	})
}

// mlcFormat returns the format of weights that a user names.
func (e *Estimate) mlcFormat(name string) (layout.Format, error) {
	if f, ok := layout.Packed(name); ok {
		return f, nil
	}
	var packed *dtype.DType
	if e.keepsTypes() {
		packed = &layout.Float32
		if s := e.Setup; s.DType != "" && s.DType != "auto" {
			packed = &e.plain
		}
	}
	f, ok := layout.Mixture(name, e.Model, packed)
	if ok && layout.Readable(name) {
		return f, nil
	}
	if !ok {
		f, err := e.method(name)
		if n, plain := dtype.Number(name); err != nil || plain && n.Bits() >= 16 {
			return f, err
		}
	}
	return layout.Format{}, fault.New(fault.Usage, "choose one of MLC's formats (q4f16_1) or a GGUF type (q4_0)",
		"%s does not run %s weights", e.Setup.Engine.Title, name)
}

// keepsTypes reports whether the package keeps the types of a GGUF's matrices.
func (e *Estimate) keepsTypes() bool {
	return slices.Contains([]string{"", mlc.AsIs, mlc.Requantized}, e.mlc().Weights)
}

// weights has those of a GGUF as its package has them.
func (mlcWeb) weights(e *Estimate) (held, error) {
	f, err := e.format(e.mlcFormat)
	h := held{format: f, types: e.Model.Stored, computes: e.computesGGUF()}
	name := strings.ToLower(e.Setup.Quantization)
	if name == "" && e.Model.Only != "" {
		name = e.Model.DType
	}
	if f, ok := layout.Packed(name); ok {
		h.computes = f.Plain.Name
	}
	if e.ofGGUF() && !(e.keepsTypes() && e.Setup.Quantization != "") {
		h.made = e.ofPackage()
	}
	return h, err
}

// ofPackage returns the weights of a GGUF's package.
func (e *Estimate) ofPackage() *made {
	as, weights := e.dequantised(), e.mlc().Weights
	in := func(d dtype.DType, how string) *made { return &made{d.Size(1, e.Model.Parameters), d.Name, how} }
	switch weights {
	case "f16":
		return in(layout.Float16, "parameters × bytes: the weights are rounded to f16")
	case "f32":
		return in(layout.Float32, dequantises+"f32")
	case mlc.Requantized:
		if e.packed = e.Model.AsIs[weights+" "+as.name]; e.packed != nil {
			return &made{sum(e.packed), weights, "the tensors of WebLLM's package, requantized"}
		}
	case "", mlc.AsIs:
		if e.packed = e.Model.AsIs[as.name]; e.packed != nil {
			return &made{sum(e.packed), e.Model.DType, "the tensors of WebLLM's package, in the types of the file"}
		}
	}
	return as
}

func (mlcWeb) cache(e *Estimate, _ hfconfig.Cache) (reserved, used int64) {
	return (ceil(int64(e.Setup.Context), mlcPage) + 1) * mlcPage, e.Tokens
}

// activations are WebLLM's workspaces: the KV cache's for a prefill chunk, and the library functions'.
func (mlcWeb) activations(e *Estimate) (Component, touched) {
	m := e.Model
	h, i, q, kv := sizes(m)
	chunk, b := float64(e.mlc().PrefillChunk), width(e.DTypes.Activations)
	cache := chunk*((2*q+2*kv)*b+8*float64(m.Heads)) + tables
	of := fmt.Sprintf("queries, keys, values and outputs of %.0f prompt tokens, the tables of the KV cache, and ", chunk)
	if l := m.Library; l != nil && len(l.MemoryUsage) > 0 {
		sum, most := l.Usage()
		c := scaled(Activation, cache+1.05*float64(most), 1, 1, e.DTypes.Activations,
			of+"the largest workspace that the model library states", Medium)
		c.Low, c.High = int64(cache), int64(cache+float64(sum)+1.1*float64(most))
		if l.Own == nil { // MLC's own libraries keep more
			c.High, c.Confidence = int64(2.5*float64(c.Best)), Low
		}
		return c, touched{}
	}
	own := chunk*b*(h+2*i) + 4*float64(m.Vocab)
	return scaled(Activation, cache+1.05*own, 0.7, 2.5, e.DTypes.Activations,
		of+"hidden state, feed-forward part and logits (no library reports its memory_usage)", Low), touched{}
}

// tables is the size of the KV cache's bookkeeping in WebLLM, for any model.
const tables = 548 * kib

func (mlcWeb) itself(e *Estimate, weights int64) (Component, []string) {
	return e.loads(weights), []string{"weights, KV cache and workspaces (SwiftShader keeps them in the GPU process)",
		"what the browser itself grows by while the model loads"}
}
