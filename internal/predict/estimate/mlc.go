package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/dtype"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modelsize"
)

// MLCSettings are the settings of WebLLM.
type MLCSettings struct {
	PrefillChunk int    // prompt tokens computed at a time
	Weights      string // those of a GGUF's package: as-is (or ""), f32 or f16
}

func (s MLCSettings) valid() error { return modelsize.Within("--prefill-chunk", s.PrefillChunk, 1<<20) }

const mlcPage = 16 // tokens, the unit of the KV cache

// browserMLC is MLC in a browser, which runs packages: those of a GGUF are written first.
type browserMLC struct{ usual }

func (browserMLC) suits(m Model, _ Setup) bool { return m.Packaged() }

// check refuses settings that a package fixes.
func (browserMLC) check(m Model, s Setup) error {
	if m.Packaged() {
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

func (browserMLC) choose(e *Estimate) {
	s := &e.Setup
	if e.Sequences > 1 {
		e.warn("%s processes one sequence at a time: %d requests wait for one another", s.Engine.Title, e.Sequences)
		e.Sequences = 1
	}
	s.PrefillChunk = cmp.Or(s.PrefillChunk, e.Model.Chunk, min(s.Context, 128))
}

func (browserMLC) take(s *Setup, settings map[string]string) {
	s.takeNumbers(settings, map[string]*int{"prefill_chunk": &s.PrefillChunk})
}

func (browserMLC) settings(e *Estimate, out map[string]string) {
	out["prefill_chunk"] = strconv.Itoa(e.Setup.PrefillChunk)
}

// unquantised has no bf16, because WebGPU has none.
func (browserMLC) unquantised(name string, _ bool) string {
	if dtype.Canonical(name) == "bf16" {
		return "f16"
	}
	return name
}

// mlcFormat returns one of MLC's formats.
func mlcFormat(name string) (format, bool) {
	p, ok := dtype.PackedAs(name)
	if !ok || p.Bits == 0 {
		return format{name: p.Plain.Name, plain: p.Plain}, ok
	}
	return format{name: name, scales: p.Plain.Name, plain: p.Plain, all: !p.Layers,
		matrix: func(rows, cols int64, _ hfconfig.Weight) (s stored) {
			s.values, s.scales = p.Size(rows, cols)
			return s
		}}, true
}

// notMLC refuses one of MLC's formats.
func notMLC(title, name string) error {
	return fault.New(fault.Usage, "choose a GGUF type (q4_0), or --engine webllm", "%s does not run MLC's format %s", title,
		name)
}

func (browserMLC) named(e *Estimate, name string) (format, error) {
	if f, ok := mlcFormat(name); ok {
		return f, nil
	}
	var packed *dtype.DType
	if e.keepsTypes() {
		packed = &float32s
		if s := e.Setup; s.DType != "" && s.DType != "auto" {
			packed = &e.plain
		}
	}
	f, ok := ggufFormat(name, e.Model, packed)
	if ok && readable(name) {
		return f, nil
	}
	if !ok {
		f, err := e.method(name)
		if n, plain := dtype.Number(name); err != nil || plain && n.Bits() >= 16 {
			return f, err
		}
	}
	return format{}, fault.New(fault.Usage, "choose one of MLC's formats (q4f16_1) or a GGUF type (q4_0)",
		"%s does not run %s weights", e.Setup.Engine.Title, name)
}

// keepsTypes reports whether the package keeps the types of a GGUF's matrices.
func (e *Estimate) keepsTypes() bool {
	return slices.Contains([]string{"", mlc.AsIs, mlc.Requantized}, e.Setup.Weights)
}

// converted returns the weights of a GGUF's package.
func (r browserMLC) converted(e *Estimate) (c converted, ok bool) {
	if !e.ofGGUF() || e.keepsTypes() && e.Setup.Quantization != "" {
		return c, false
	}
	switch as := e.dequantised(); e.Setup.Weights {
	case "f16":
		return converted{float16s.Size(1, e.Model.Parameters), "f16", "parameters × bytes: the weights are rounded to f16"}, true
	case "f32":
		return converted{float32s.Size(1, e.Model.Parameters), "f32", dequantises + "f32"}, true
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

// readable reports whether weights can be made from a mixture: its base type can be read.
func readable(name string) bool {
	t, ok := gguf.TypeNamed(mixtures()[name].base)
	return ok && t.Readable()
}

func (browserMLC) computes(e *Estimate) string {
	name := strings.ToLower(e.Setup.Quantization)
	if name == "" && e.Model.Packaged() {
		name = e.Model.DType
	}
	if f, ok := mlcFormat(name); ok {
		return f.plain.Name
	}
	if e.ofGGUF() && e.Setup.DType == "" {
		return "f32"
	}
	return usual{}.computes(e)
}

func (browserMLC) slots(e *Estimate, _ hfconfig.Cache) (reserved, used int64) {
	return (ceil(int64(e.Setup.Context), mlcPage) + 1) * mlcPage, e.Tokens
}

func (browserMLC) reserves(perToken, _, _ string) string {
	return perToken + fmt.Sprintf(" × the context window in pages of %d tokens, rounded up, and one page more; reserved at load",
		mlcPage)
}

// activations are WebLLM's workspaces: the KV cache's for a prefill chunk, and the library functions'.
func (browserMLC) activations(e *Estimate) Component {
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

func (browserMLC) grows(*Estimate) []string {
	return []string{"weights, KV cache and workspaces (SwiftShader keeps them in the GPU process)",
		"what the browser itself grows by while the model loads"}
}

func (browserMLC) needsF16(e Estimate) bool { return e.DTypes.Activations == "f16" }
