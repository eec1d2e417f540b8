package estimate

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"

	"llmparity/internal/engine"
)

// settable reports whether the engine is llama.cpp with settings from us, not one that decides itself.
func (e Estimate) settable() bool { return e.runs(engine.GGML) && !e.Setup.Engine.Itself }

// windowed reports whether llama.cpp limits the KV cache of sliding-window layers to the window.
func windowed(architecture string) bool {
	return slices.Contains([]string{"gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma4", "cohere2", "gpt_oss",
		"gpt-oss", "llama4", "llama4_text", "exaone4", "olmo3",
		"olmo2", "exaone-moe", "smallthinker", "plamo3", "mimo2", "afmoe", "lfm2"}, architecture)
}

// computeBuffer predicts llama.cpp's compute buffer on a CPU: attention's tensors or the feed-forward part's, whichever
// are larger.
func (e *Estimate) computeBuffer() Component {
	m, s := e.Model, e.Setup
	cells := float64(padded(int64(s.Context), llamaPad))
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

// touched predicts the part of llama.cpp's compute buffer that is written to. The buffer is reserved for a full batch
// in a full context; a shorter prompt uses less.
func (e *Estimate) touched() (Component, string) {
	s := e.Setup
	cells := padded(int64(s.Context), llamaPad)
	at := min(int64(s.UBatch), int64(max(s.InputLen, 1)), cells)
	seen := min(padded(e.Tokens, llamaPad), cells)
	c := e.Component(Activation)
	best := min(e.computed(float64(seen), float64(at)), float64(c.Best))
	c.Low, c.Best = int64(best*0.6), int64(best)
	c.High = max(min(c.High, int64(best*1.6)+int64(4*at)*int64(e.Model.Vocab)), c.Best)
	return c, fmt.Sprintf("the part of the compute buffer that %d tokens at a time touch", at)
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
	if !e.settable() || e.Setup.GPULayers > 0 {
		return 0, nil
	}
	for _, name := range slices.Sorted(maps.Keys(e.Model.Matrices)) {
		if slices.Contains(e.Setup.Repacks, name) {
			n, types = n+e.Model.Matrices[name], append(types, name)
		}
	}
	return n, types
}

// copies adds the repacked weights, which a mapped file does not replace.
func (e *Estimate) copies(c *Component) {
	n, types := e.repacked()
	if n == 0 {
		return
	}
	if e.Setup.NoMmap {
		c.Method += fmt.Sprintf("; %.2f MiB of %s repacked for the processor, in place of the original",
			float64(n)/mib, strings.Join(types, ", "))
		return
	}
	c.Low, c.Best, c.High = c.Low+n, c.Best+n, c.High+n
	c.Method += fmt.Sprintf(", mapped; plus %.2f MiB of %s repacked for the processor", float64(n)/mib,
		strings.Join(types, ", "))
}
