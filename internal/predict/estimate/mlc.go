package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/predict/layout"
)

// MLCSettings are the settings of WebLLM.
type MLCSettings struct {
	PrefillChunk int    // prompt tokens computed at a time
	Weights      string // those of a GGUF's package: as-is (or ""), f32 or f16
}

const mlcPage = 16 // tokens, the unit of the KV cache

// mlcWeb is MLC in a browser, which runs packages: those of a GGUF are written first.
type mlcWeb struct{ inBrowser }

func (r mlcWeb) traits() traits {
	t := r.inBrowser.traits()
	t.name = "mlc"
	return t
}

func (mlcWeb) limits(s Setup) error {
	return modelsize.Within("--prefill-chunk", s.PrefillChunk, 1<<20)
}

// check refuses settings that a package fixes.
func (mlcWeb) check(m Model, s Setup) error {
	if m.Only != "" {
		for _, f := range []struct{ name, value string }{{"--quantization", s.Quantization}, {"--dtype", s.DType},
			{"--kv-cache-dtype", s.KVDType}} {
			if f.value != "" && !(f.name == "--kv-cache-dtype" && hasKV(m, f.value)) {
				return fault.New(fault.Usage, "omit it", "%s %s has no effect on package %s, which has fixed dtypes (%s)",
					f.name, f.value, m.Name, m.DType)
			}
		}
	}
	if s.TensorParallel > 1 {
		return fault.New(fault.Usage, "omit --tensor-parallel-size", "%s uses one device", s.Engine.Title)
	}
	return nil
}

// hasKV reports whether a dtype is that of a package's KV cache, which is the dtype of its activations.
func hasKV(m Model, given string) bool {
	own := "f32"
	if strings.Contains(m.DType, "f16") {
		own = "f16"
	}
	return dtype.Canonical(given) == own
}

func (mlcWeb) choose(e *Estimate) {
	s := &e.Setup
	if e.Sequences > 1 {
		e.warn("%s processes one sequence at a time: %d requests wait for one another", s.Engine.Title, e.Sequences)
		e.Sequences = 1
	}
	s.PrefillChunk = cmp.Or(s.PrefillChunk, e.Model.Chunk, min(s.Context, 128))
}

func (mlcWeb) take(s *Setup, settings map[string]string) {
	s.takeNumbers(settings, map[string]*int{"prefill_chunk": &s.PrefillChunk})
}

func (mlcWeb) settings(e *Estimate, out map[string]string) {
	out["prefill_chunk"] = strconv.Itoa(e.Setup.PrefillChunk)
}

// unquantised has no bf16, because WebGPU has none.
func (mlcWeb) unquantised(name string, _ bool) string {
	if dtype.Canonical(name) == "bf16" {
		return "f16"
	}
	return name
}

// notMLC refuses a format of weights that only packages have, for another runtime.
func notMLC(title, name string) error {
	return fault.New(fault.Usage, "choose a GGUF type (q4_0), or --engine webllm", "%s does not run MLC's format %s", title,
		name)
}

func (mlcWeb) named(e *Estimate, name string) (layout.Format, error) {
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
	return slices.Contains([]string{"", mlc.AsIs, mlc.Requantized}, e.Setup.Weights)
}

// converted returns the weights of a GGUF's package.
func (r mlcWeb) converted(e *Estimate) (c converted, ok bool) {
	if !e.ofGGUF() || e.keepsTypes() && e.Setup.Quantization != "" {
		return c, false
	}
	switch as := e.dequantised(); e.Setup.Weights {
	case "f16":
		return converted{layout.Float16.Size(1, e.Model.Parameters), "f16", "parameters × bytes: the weights are rounded to f16"}, true
	case "f32":
		return converted{layout.Float32.Size(1, e.Model.Parameters), "f32", dequantises + "f32"}, true
	case mlc.Requantized:
		if e.packed = e.Model.AsIs[mlc.Requantized+" "+as.name]; e.packed != nil {
			return converted{sum(e.packed), e.Setup.Weights, "the tensors of WebLLM's package, requantized"}, true
		}
		return as, true
	case "", mlc.AsIs:
		if e.packed = e.Model.AsIs[as.name]; e.packed != nil {
			return converted{sum(e.packed), e.Model.DType, "the tensors of WebLLM's package, in the types of the file"}, true
		}
		return as, true
	default:
		return as, true
	}
}

func (mlcWeb) computes(e *Estimate) string {
	name := strings.ToLower(e.Setup.Quantization)
	if name == "" && e.Model.Only != "" {
		name = e.Model.DType
	}
	if f, ok := layout.Packed(name); ok {
		return f.Plain.Name
	}
	if e.ofGGUF() && e.Setup.DType == "" {
		return "f32"
	}
	return usual{}.computes(e)
}

func (mlcWeb) slots(e *Estimate, _ hfconfig.Cache) (reserved, used int64) {
	return (ceil(int64(e.Setup.Context), mlcPage) + 1) * mlcPage, e.Tokens
}

func (mlcWeb) reserves(perToken, _, _ string) string {
	return perToken + fmt.Sprintf(" × the context window in pages of %d tokens, rounded up, and one page more; reserved at load",
		mlcPage)
}

// activations are WebLLM's workspaces: the KV cache's for a prefill chunk, and the library functions'.
func (mlcWeb) activations(e *Estimate) Component {
	m := e.Model
	h, i, q, kv := sizes(m)
	chunk, b := float64(e.Setup.PrefillChunk), width(e.DTypes.Activations)
	cache := chunk*((2*q+2*kv)*b+8*float64(m.Heads)) + tables
	of := fmt.Sprintf("queries, keys, values and outputs of %.0f prompt tokens, the tables of the KV cache, and ", chunk)
	if l := m.Library; l != nil && len(l.MemoryUsage) > 0 {
		sum, most := usage(l)
		c := scaled(Activation, cache+1.05*float64(most), 1, 1, e.DTypes.Activations,
			of+"the largest workspace that the model library states", Medium)
		c.Low, c.High = int64(cache), int64(cache+float64(sum)+1.1*float64(most))
		if l.Own == nil { // MLC's own libraries keep more
			c.High, c.Confidence = int64(2.5*float64(c.Best)), Low
		}
		return c
	}
	own := chunk*b*(h+2*i) + 4*float64(m.Vocab)
	return scaled(Activation, cache+1.05*own, 0.7, 2.5, e.DTypes.Activations,
		of+"hidden state, feed-forward part and logits (no library reports its memory_usage)", Low)
}

// tables is the size of the KV cache's bookkeeping in WebLLM, for any model.
const tables = 548 * kib

func usage(l *mlc.Library) (sum, most int64) {
	for _, n := range l.MemoryUsage {
		n = min(max(n, 0), 1<<44)
		sum, most = sum+n, max(most, n)
	}
	return sum, most
}

func (mlcWeb) grows(*Estimate) []string {
	return []string{"weights, KV cache and workspaces (SwiftShader keeps them in the GPU process)",
		"what the browser itself grows by while the model loads"}
}

func (mlcWeb) published(_ *Setup, m, _ Model, _ string) Model { return m }

// WebLLM asks for wishedBuffer, or else for fallbackBuffer and GrantedBuffer.
const (
	wishedBuffer   = 1 << 30
	fallbackBuffer = 1 << 28
)

// buffer is what WebLLM asks for.
func (mlcWeb) buffer(s Setup, whole, bound int64) Room {
	name := s.Engine.Title
	if whole == 0 && bound == 0 {
		if s.OnGPU {
			return Room{Free: wishedBuffer, How: name + "'s request to a GPU"}
		}
		return Room{Free: SwiftShaderBuffer, How: "SwiftShader's limit"}
	}
	room := Room{Free: wishedBuffer, How: name + "'s request to the adapter"}
	if whole < wishedBuffer {
		room.Free = fallbackBuffer
	}
	if bound < wishedBuffer {
		room.Free = min(room.Free, GrantedBuffer)
	}
	limits := fmt.Sprintf("maxBufferSize is %d and maxStorageBufferBindingSize is %d", whole, bound)
	switch {
	case whole < fallbackBuffer || bound < GrantedBuffer:
		room = Room{How: limits + "; " + name + " does not start with these limits"}
	case room.Free < wishedBuffer:
		room.How = limits + "; " + name + " then requests less"
	}
	return room
}
