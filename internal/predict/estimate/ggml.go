package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"llmparity/internal/models/hfconfig"
)

// GGMLSettings are the settings of llama.cpp and of engines built on it.
type GGMLSettings struct {
	UBatch  int      // tokens computed at a time
	NoFlash bool     // no flash attention
	NoMmap  bool     // reads the file instead of mapping it
	Repacks []string // types that are repacked for the processor; see the function Repacks
}

func (e *Estimate) ggml() GGMLSettings { return Own[GGMLSettings](e.Setup) }

// ggmlPad is the unit, in tokens, of the KV cache.
const ggmlPad = 256

// ggmlSettings are those of every engine built on it. flags is how its own flags of a run begin.
func ggmlSettings(flags string) []Setting {
	return []Setting{
		field(func(s *GGMLSettings) *int { return &s.UBatch }, Setting{Key: "ubatch", Flag: "ubatch", Most: 1 << 20,
			Or: 512, Less: 128, Advice: "smaller batches (--" + flags + "-ubatch 128)",
			Help: "llama.cpp: tokens computed at once (default 512)"}),
		field(func(s *GGMLSettings) *bool { return &s.NoFlash }, Setting{Key: "flash_attention",
			Flag: "no-flash-attention",
			Help: "llama.cpp: without flash attention (default: as \"run\" starts it: without, unless the KV cache is " +
				"quantized)"}),
	}
}

// ggmlRuntime is the library of llama.cpp. It computes in f32, and keeps the weights as the file has them.
var ggmlRuntime = &Runtime{name: "ggml", gguf: true, device: splitLayers, kv: "f16", rules: ggml{},
	assumed: func(m Model, _ Setup) bool { return m.GGUF() },
	reserves: fmt.Sprintf("%%[1]s × the context window, rounded up to a multiple of %d tokens, × %%[3]s; reserved at load",
		ggmlPad),
	settings: append(ggmlSettings("llamacpp"),
		field(func(s *GGMLSettings) *bool { return &s.NoMmap }, Setting{Key: "mmap",
			Less: true, Advice: "without mmap (--llamacpp-mmap off), so that repacked weights exist once"}),
	),
	take: func(s *Setup, settings map[string]string) {
		s.Concurrency = cmp.Or(number(settings["parallel"]), s.Concurrency)
		s.GPULayers = cmp.Or(number(settings["gpu_layers"]), s.GPULayers)
		if settings["repacking"] == "off" {
			Change(s, func(g *GGMLSettings) { g.Repacks = nil })
		}
	},
	tell: func(e *Estimate, out map[string]string) {
		s := e.Setup
		n, _ := e.repacked()
		out["gpu_layers"], out["repacking"] = strconv.Itoa(s.GPULayers), onOff[n > 0]
		if s.Engine.Itself || s.Concurrency > 1 {
			out["parallel"] = strconv.Itoa(s.Concurrency)
		}
	},
	notes: func(e Estimate) string {
		if e.Setup.Engine.Itself || e.DTypes.KVCache != "f32" || !e.ggml().NoFlash {
			return ""
		}
		return "KV cache dtype and flash attention are as `llmparity run` starts " + e.Setup.Engine.Title + "; for its own " +
			"defaults, add --kv-cache-dtype f16 --no-flash-attention=false"
	},
	saves: func(e Estimate, add func(string, func(*Setup))) {
		if kv := e.DTypes.KVCache; strings.HasSuffix(kv, "32") || strings.HasSuffix(kv, "16") {
			add("KV cache in q8_0 (llama.cpp needs flash attention for it)", func(s *Setup) {
				s.KVDType, s.ValueType = "q8_0", ""
				Change(s, func(g *GGMLSettings) { g.NoFlash = false })
			})
		}
	}}

type ggml struct{ usual }

func (ggml) cache(e *Estimate, c hfconfig.Cache) (reserved, used int64) {
	cells := padded(int64(e.Setup.Context), ggmlPad)
	if c.Window > 0 && slices.Contains(ggmlWindows, e.Model.Type) {
		ubatch := min(int64(e.ggml().UBatch), cells)
		cells = min(cells, padded(int64(c.Window)+ubatch, ggmlPad))
		return cells, min(e.seen(c), cells)
	}
	return cells, e.Tokens
}

// ggmlWindows are the architectures of which llama.cpp limits the KV cache of sliding-window layers to the window.
var ggmlWindows = []string{"gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma4", "cohere2", "gpt_oss", "gpt-oss",
	"llama4", "llama4_text", "exaone4", "olmo3", "olmo2", "exaone-moe", "smallthinker", "plamo3", "mimo2", "afmoe",
	"lfm2"}

// weights has the repacked ones twice, if the file is mapped.
func (ggml) weights(e *Estimate) (held, error) {
	h, err := usual{}.weights(e)
	h.computes, h.mapped = "f32", !e.Setup.Engine.Itself && !e.ggml().NoMmap
	switch n, what := e.repacked(); {
	case n > 0 && e.ggml().NoMmap:
		h.how = "; " + what + " for the processor, in place of the original"
	case n > 0:
		h.twice, h.how = n, ", mapped; plus "+what+" for the processor"
	}
	return h, err
}

// activations are llama.cpp's compute buffer on a CPU: attention's tensors or the feed-forward part's, whichever
// are larger. The buffer is reserved for a full batch in a full context; a shorter prompt writes to less of it.
func (ggml) activations(e *Estimate) (Component, touched) {
	m, s := e.Model, e.ggml()
	cells := padded(int64(e.Setup.Context), ggmlPad)
	ub := min(int64(s.UBatch), cells)
	flash := map[bool]string{false: "with", true: "without"}[s.NoFlash]
	c := scaled(Activation, e.computed(cells, ub), 0.75, 1.35, "f32",
		fmt.Sprintf("llama.cpp's compute buffer (batches of %d tokens, %s flash attention): the larger of attention and "+
			"feed-forward tensors, plus the logits", ub, flash), Medium)
	c.High += 4 * ub * int64(m.Vocab) // builds before mid-2026 reserve the logits of all these tokens
	if m.Active > 0 && m.Active < m.Parameters || m.Trust == Low || m.CacheTrust == Low {
		c.Confidence = Low
	}
	at := min(ub, int64(max(e.Setup.InputLen, 1)))
	best := min(e.computed(min(padded(e.Tokens, ggmlPad), cells), at), float64(c.Best))
	part := c
	part.Low, part.Best = int64(best*0.6), int64(best)
	part.High = max(min(c.High, int64(best*1.6)+4*at*int64(m.Vocab)), part.Best)
	return c, touched{part, fmt.Sprintf("the part of the compute buffer that %d tokens at a time touch", at)}
}

// computed returns the compute buffer for that many tokens at a time and cells of KV cache.
func (e *Estimate) computed(cells, tokens int64) float64 {
	m := e.Model
	h, i, q, kv := sizes(m)
	attention, forward, mask := 3*h+3*q+2*kv+float64(cells)*float64(m.Heads), 5*h+2*kv+3*i, 4*float64(cells)
	if !e.ggml().NoFlash {
		attention, forward, mask = 3*h+3*q+kv, 5*h+3*i, 2*float64(cells)
	}
	return float64(tokens)*(4*max(attention, forward)+mask) + 4*float64(m.Vocab)*float64(e.Sequences)
}

func (ggml) itself(e *Estimate, weights int64) (Component, []string) {
	c, _ := usual{}.itself(e, weights)
	file := "the whole mapped file, because all of it is read"
	n, again := e.repacked()
	switch {
	case e.ggml().NoMmap:
		file = "weights read into memory (no mmap)"
	case n > 0:
		again += ", in addition to the mapped file"
	}
	return c, []string{file, again, "the KV cache, zeroed at load", e.touched.how, "the program and its vocabulary"}
}
