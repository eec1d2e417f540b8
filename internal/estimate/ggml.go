package estimate

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"

	"llmparity/internal/engine"
	"llmparity/internal/gguf"
)

// settable tells whether the engine is llama.cpp as it is set from here, and not one that decides by itself.
func (e Estimate) settable() bool { return e.runs(engine.GGML) && !e.Setup.Engine.Itself }

// windowed are the architectures for which llama.cpp keeps no more of a sliding window's layers than the window.
func windowed(architecture string) bool {
	return slices.Contains([]string{"gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma4", "cohere2", "gpt_oss",
		"gpt-oss", "llama4", "llama4_text", "exaone4", "olmo3",
		"olmo2", "exaone-moe", "smallthinker", "plamo3", "mimo2", "afmoe", "lfm2"}, architecture)
}

// computeBuffer follows llama.cpp's compute buffer on a CPU: the larger of what attention and the feed-forward part
// hold at one time.
func (e *Estimate) computeBuffer() Component {
	m, s := e.Model, e.Setup
	cells := float64(padded(int64(s.Context), llamaPad))
	ub := min(float64(s.UBatch), cells)
	how := map[bool]string{false: "with flash attention", true: "without flash attention"}[s.NoFlash]
	best := e.computed(cells, ub)
	c := scaled(Activation, best, 0.75, 1.35, "f32",
		fmt.Sprintf("llama.cpp's compute buffer for %.0f tokens at a time, %s: the larger of attention's and the feed-forward part's tensors; and the logits", ub, how), Medium)
	c.High += int64(4 * ub * float64(m.Vocab)) // builds before mid-2026 reserve the logits of all of these tokens
	if m.Active > 0 && m.Active < m.Parameters || m.Trust == Low || m.CacheTrust == Low {
		c.Confidence = Low
	}
	return c
}

// computed is what so many tokens at a time take, with so many cells to look at.
func (e *Estimate) computed(cells, tokens float64) float64 {
	m := e.Model
	h, i, q, kv := m.sizes()
	attention, forward, mask := 3*h+3*q+2*kv+cells*float64(m.Heads), 5*h+2*kv+3*i, 4*cells
	if !e.Setup.NoFlash {
		attention, forward, mask = 3*h+3*q+kv, 5*h+3*i, 2*cells
	}
	return tokens*(4*max(attention, forward)+mask) + 4*float64(m.Vocab)*float64(e.Sequences)
}

// touched is what of llama.cpp's compute buffer is ever written to: it is made for as many tokens as are computed at a
// time, in a full context, and a shorter prompt uses the beginnings of its parts.
func (e *Estimate) touched() (Component, string) {
	s := e.Setup
	cells := padded(int64(s.Context), llamaPad)
	at := min(int64(s.UBatch), int64(max(s.InputLen, 1)), cells)
	seen := min(padded(e.Tokens, llamaPad), cells)
	c := e.Component(Activation)
	best := min(e.computed(float64(seen), float64(at)), float64(c.Best))
	c.Low, c.Best = int64(best*0.6), int64(best)
	c.High = max(min(c.High, int64(best*1.6)+int64(4*at)*int64(e.Model.Vocab)), c.Best)
	return c, fmt.Sprintf("of the compute buffer what %d tokens at a time touch", at)
}

// places says where llama.cpp has the weights.
func (e *Estimate) places() []string {
	n, types := e.repacked()
	again := "repacking off: no type that is laid out anew"
	if n > 0 {
		again = fmt.Sprintf("repacking on: %.2f MiB of %s laid out anew", float64(n)/mib, strings.Join(types, ", "))
	}
	if e.Setup.NoMmap {
		return []string{"mmap off: the weights are read into memory", again}
	}
	if n > 0 {
		again += ", beside the file's pages that they were read from"
	}
	return []string{"mmap on: the whole file is mapped and read at the load", again}
}

// Repacks are the types of weights that llama.cpp lays out anew for the processor that this runs on, in builds of 2026:
// on others, and in older builds, they are others.
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

// matrices are the bytes, by type, of what llama.cpp may lay out anew: the matrices that it multiplies by, of which it
// takes eight rows at a time. An embedding that is the head too is one of them then, though it is looked up in as it
// was.
func matrices(tensors []gguf.Tensor) map[string]int64 {
	head := slices.ContainsFunc(tensors, func(t gguf.Tensor) bool { return t.Name == "output.weight" })
	out := map[string]int64{}
	for _, t := range tensors {
		multiplied := strings.HasPrefix(t.Name, "blk.") || t.Name == "output.weight" || t.Name == "token_embd.weight" &&
			!head
		if multiplied && (len(t.Shape) == 2 || len(t.Shape) == 3 && strings.Contains(t.Name, "_exps.")) &&
			t.Shape[1]%8 == 0 {
			out[strings.ToLower(t.Type.String())] += t.Size
		}
	}
	return out
}

// repacked is how much of the weights llama.cpp lays out anew in memory of its own, and in which types.
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

// copies are what llama.cpp has twice: a file that is mapped stays so beside what was laid out anew from it.
func (e *Estimate) copies(c *Component) {
	n, types := e.repacked()
	if n == 0 {
		return
	}
	if e.Setup.NoMmap {
		c.Method += fmt.Sprintf("; %.2f MiB of %s laid out anew for the processor, in place of the file's",
			float64(n)/mib, strings.Join(types, ", "))
		return
	}
	c.Low, c.Best, c.High = c.Low+n, c.Best+n, c.High+n
	c.Method += fmt.Sprintf(", mapped; and %.2f MiB of %s laid out anew for the processor beside them", float64(n)/mib,
		strings.Join(types, ", "))
}
