package estimate

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/cpu"

	"llmparity/internal/dtype"
	"llmparity/internal/models/hfconfig"
	"llmparity/internal/models/modelsize"
	"llmparity/internal/predict/layout"
)

// GGMLSettings are the settings of llama.cpp and of engines built on it.
type GGMLSettings struct {
	ValueType string   // dtype of the cached values if it differs from the keys'
	UBatch    int      // tokens computed at a time
	NoFlash   bool     // no flash attention
	NoMmap    bool     // reads the file instead of mapping it
	GPULayers int      // layers on the GPU
	Repacks   []string // types that are repacked for the processor; see the function Repacks
}

// ggmlPad is the unit, in tokens, of the KV cache.
const ggmlPad = 256

// ggml is the library of llama.cpp. It computes in f32, and keeps the weights as the file has them.
type ggml struct{ usual }

func (ggml) traits() traits {
	return traits{name: "ggml", flags: []string{"gpu-layers", "ram-gb"}, layers: true, kv: "f16"}
}

func (ggml) limits(s Setup) error { return modelsize.Within("--ubatch", s.UBatch, 1<<20) }

func (ggml) suits(m Model, _ Setup) bool { return m.GGUF() }

func (ggml) file(m Model) string {
	return fmt.Sprintf("write its GGUF file with \"llmparity model convert %s --to gguf\", and name that", m.Name)
}

func (ggml) choose(e *Estimate) { e.Setup.UBatch = cmp.Or(e.Setup.UBatch, 512) }

func (ggml) take(s *Setup, settings map[string]string) {
	s.takeNumbers(settings, map[string]*int{"ubatch": &s.UBatch,
		"parallel": &s.Concurrency, "gpu_layers": &s.GPULayers})
	s.NoFlash, s.NoMmap = settings["flash_attention"] == "off", settings["mmap"] == "off"
	if settings["repacking"] == "off" {
		s.Repacks = nil
	}
}

func (g ggml) settings(e *Estimate, out map[string]string) {
	s := e.Setup
	onOff := map[bool]string{false: "off", true: "on"}
	n, _ := e.repacked()
	out["ubatch"], out["gpu_layers"] = strconv.Itoa(s.UBatch), strconv.Itoa(s.GPULayers)
	out["flash_attention"], out["mmap"], out["repacking"] = onOff[!s.NoFlash], onOff[!s.NoMmap], onOff[n > 0]
	if s.Engine.Itself || s.Concurrency > 1 {
		out["parallel"] = strconv.Itoa(s.Concurrency)
	}
}

func (ggml) computes(*Estimate) string { return "f32" }

func (ggml) slots(e *Estimate, c hfconfig.Cache) (reserved, used int64) {
	cells := padded(int64(e.Setup.Context), ggmlPad)
	if c.Window > 0 && windowed(e.Model.Type) {
		ubatch := min(int64(e.Setup.UBatch), cells)
		cells = min(cells, padded(int64(c.Window)+ubatch, ggmlPad))
		return cells, min(e.seen(c), cells)
	}
	return cells, e.Tokens
}

// windowed reports whether llama.cpp limits the KV cache of sliding-window layers to the window.
func windowed(architecture string) bool {
	return slices.Contains([]string{"gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma4", "cohere2", "gpt_oss",
		"gpt-oss", "llama4", "llama4_text", "exaone4", "olmo3",
		"olmo2", "exaone-moe", "smallthinker", "plamo3", "mimo2", "afmoe", "lfm2"}, architecture)
}

func (ggml) reserves(perToken, _, sequences string) string {
	return perToken + fmt.Sprintf(" × the context window, rounded up to a multiple of %d tokens, × %s; reserved at load",
		ggmlPad, sequences)
}

// activations are llama.cpp's compute buffer on a CPU: attention's tensors or the feed-forward part's, whichever
// are larger.
func (ggml) activations(e *Estimate) Component {
	m, s := e.Model, e.Setup
	cells := float64(padded(int64(s.Context), ggmlPad))
	ub := min(float64(s.UBatch), cells)
	how := map[bool]string{false: "with flash attention", true: "without flash attention"}[s.NoFlash]
	best := e.computed(cells, ub)
	c := scaled(Activation, best, 0.75, 1.35, "f32",
		fmt.Sprintf("llama.cpp's compute buffer (batches of %.0f tokens, %s): the larger of attention and feed-forward "+
			"tensors, plus the logits", ub, how), Medium)
	c.High += int64(4 * ub * float64(m.Vocab)) // builds before mid-2026 reserve the logits of all these tokens
	if m.Active > 0 && m.Active < m.Parameters || m.Trust == Low || m.CacheTrust == Low {
		c.Confidence = Low
	}
	return c
}

// computed returns the compute buffer for that many tokens at a time and cells of KV cache.
func (e *Estimate) computed(cells, tokens float64) float64 {
	m := e.Model
	h, i, q, kv := sizes(m)
	attention, forward, mask := 3*h+3*q+2*kv+cells*float64(m.Heads), 5*h+2*kv+3*i, 4*cells
	if !e.Setup.NoFlash {
		attention, forward, mask = 3*h+3*q+kv, 5*h+3*i, 2*cells
	}
	return tokens*(4*max(attention, forward)+mask) + 4*float64(m.Vocab)*float64(e.Sequences)
}

// touched is the part of llama.cpp's compute buffer that is written to. The buffer is reserved for a full batch
// in a full context; a shorter prompt uses less.
func (ggml) touched(e *Estimate) (Component, string) {
	s := e.Setup
	cells := padded(int64(s.Context), ggmlPad)
	at := min(int64(s.UBatch), int64(max(s.InputLen, 1)), cells)
	seen := min(padded(e.Tokens, ggmlPad), cells)
	c := e.Component(Activation)
	best := min(e.computed(float64(seen), float64(at)), float64(c.Best))
	c.Low, c.Best = int64(best*0.6), int64(best)
	c.High = max(min(c.High, int64(best*1.6)+int64(4*at)*int64(e.Model.Vocab)), c.Best)
	return c, fmt.Sprintf("the part of the compute buffer that %d tokens at a time touch", at)
}

func (ggml) grows(e *Estimate) []string {
	_, part := ggml{}.touched(e)
	return append(e.places(), "the KV cache, zeroed at load", part, "the program and its vocabulary")
}

// places describes where llama.cpp keeps the weights.
func (e *Estimate) places() []string {
	n, types := e.repacked()
	again := "no repacking"
	if n > 0 {
		again = fmt.Sprintf("%.2f MiB of %s repacked", float64(n)/mib, strings.Join(types, ", "))
	}
	if e.Setup.NoMmap {
		return []string{"weights read into memory (no mmap)", again}
	}
	if n > 0 {
		again += ", in addition to the mapped file"
	}
	return []string{"the whole mapped file, because all of it is read", again}
}

// Repacks returns the weight types that llama.cpp repacks for this processor. It holds for builds of 2026.
func Repacks() []string {
	switch {
	case runtime.GOARCH == "amd64" && cpu.X86.HasAVX2:
		types := []string{"q4_0", "q4_k", "iq4_nl", "mxfp4"}
		if cpu.X86.HasAVX512F {
			types = append(types, "q2_k")
		}
		return types
	case runtime.GOARCH == "arm64":
		return []string{"q4_0", "q4_k", "q5_k", "q6_k", "q8_0", "iq4_nl", "mxfp4"}
	}
	return nil
}

// repacked returns how many bytes of the weights llama.cpp repacks into memory of its own, and of which types.
func (e *Estimate) repacked() (n int64, types []string) {
	if e.Setup.Engine.Itself || e.Setup.GPULayers > 0 {
		return 0, nil
	}
	for _, name := range slices.Sorted(maps.Keys(e.Model.Matrices)) {
		if slices.Contains(e.Setup.Repacks, name) {
			n, types = n+e.Model.Matrices[name], append(types, name)
		}
	}
	return n, types
}

// loaded has the repacked weights twice, if the file is mapped.
func (ggml) loaded(e *Estimate, _ layout.Format) (types map[string]int64, twice int64, how string) {
	n, of := e.repacked()
	which := fmt.Sprintf("%.2f MiB of %s repacked for the processor", float64(n)/mib, strings.Join(of, ", "))
	switch {
	case n == 0:
		return e.Model.Stored, 0, ""
	case e.Setup.NoMmap:
		return e.Model.Stored, 0, "; " + which + ", in place of the original"
	}
	return e.Model.Stored, n, ", mapped; plus " + which
}

func (ggml) mapped(s Setup) bool { return !s.Engine.Itself && !s.NoMmap }

func (ggml) changes(e Estimate, add func(say string, set func(*Setup))) {
	s := e.Setup
	if strings.HasSuffix(e.DTypes.KVCache, "32") || strings.HasSuffix(e.DTypes.KVCache, "16") {
		add("KV cache in q8_0 (llama.cpp needs flash attention for it)",
			func(c *Setup) { c.KVDType, c.ValueType, c.NoFlash = "q8_0", "", false })
	}
	if !s.Engine.Itself && s.UBatch > 128 {
		add("smaller batches (--llamacpp-ubatch 128)", func(c *Setup) { c.UBatch = 128 })
	}
	if n, _ := e.repacked(); n > 0 && !s.NoMmap {
		add("without mmap (--llamacpp-mmap off), so that repacked weights exist once",
			func(c *Setup) { c.NoMmap = true })
	}
}

func (ggml) place(s *Setup, _ Machine) error {
	switch vram := s.GPUMemoryGiB > 0; {
	case s.Engine.Itself:
		s.OnGPU = vram || s.GPULayers > 0
	case vram && s.GPULayers == 0:
		return noEffect("gpu-memory-gb", "add --gpu-layers, or omit it", "%s puts no layers on a GPU", s.Engine.Title)
	}
	return nil
}

func (ggml) notes(e Estimate, _ Machine) string {
	if s := e.Setup; s.Engine.Itself || e.DTypes.KVCache != "f32" || !s.NoFlash {
		return ""
	}
	return "KV cache dtype and flash attention are as `llmparity run` starts " + e.Setup.Engine.Title + "; for its own " +
		"defaults, add --kv-cache-dtype f16 --no-flash-attention=false"
}

func (ggml) published(s *Setup, m, of Model, only string) Model {
	packed, _ := dtype.PackedAs(m.DType)
	s.Quantization = cmp.Or(s.Quantization, packed.GGUF())
	return of.Noted("predicted for a GGUF file in %s, because the package (%s) is for %s only; for another type, use "+
		"--quantization", s.Quantization, m.DType, only)
}
