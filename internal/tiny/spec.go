package tiny

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
)

// SentencePiece is the tokenizer with byte fallback. Others are named by their pre-tokenizers.
const SentencePiece = "sentencepiece"

// The kinds of rotation scaling in a Spec.
const (
	Linear = "linear"
	Llama3 = "llama3" // the factor for low frequencies, none for high ones, smooth in between
)

// Spec is the shape of a random model. Resolved replaces zeros by defaults.
type Spec struct {
	Name         string  `json:"name"`         // general.name
	Architecture string  `json:"architecture"` // gguf.Llama or gguf.Qwen2
	Layers       int     `json:"layers"`
	Hidden       int     `json:"hidden"`
	Heads        int     `json:"heads"`
	KVHeads      int     `json:"kv_heads"`
	HeadDim      int     `json:"head_dim"`
	FFN          int     `json:"ffn"`
	Vocab        int     `json:"vocab"`
	Context      int     `json:"context"`
	Window       int     `json:"window,omitempty"` // a sliding window; 0 for none
	Tied         bool    `json:"tied"`
	Bias         bool    `json:"bias"` // of queries, keys and values; a qwen2 has them always
	RopeBase     float64 `json:"rope_base"`
	RopeScaling  string  `json:"rope_scaling,omitempty"` // Linear or Llama3; "" for none
	RopeFactor   float64 `json:"rope_factor,omitempty"`
	RopeContext  int     `json:"rope_context,omitempty"` // the context before Llama3's scaling
	Tokenizer    string  `json:"tokenizer"`              // SentencePiece, or a pre-tokenizer: gguf.PreGPT2 and so on
	Seed         uint64  `json:"seed"`
}

// Resolved fills in the defaults and refuses impossible specs, as a fault of kind Usage.
func (s Spec) Resolved() (Spec, error) {
	s.Architecture = cmp.Or(s.Architecture, gguf.Llama)
	s.Layers, s.Hidden = cmp.Or(s.Layers, 2), cmp.Or(s.Hidden, 128)
	if s.HeadDim > 0 && s.Heads == 0 {
		s.Heads = max(1, s.Hidden/s.HeadDim)
	}
	s.Heads = cmp.Or(s.Heads, 4)
	s.KVHeads = cmp.Or(s.KVHeads, s.Heads)
	if s.HeadDim == 0 {
		s.HeadDim = s.Hidden / max(1, s.Heads)
	}
	s.FFN, s.Vocab = cmp.Or(s.FFN, 2*s.Hidden), cmp.Or(s.Vocab, 640)
	s.Context, s.RopeBase = cmp.Or(s.Context, 1024), cmp.Or(s.RopeBase, 10000)
	s.Bias = s.Bias || s.Architecture == gguf.Qwen2
	if s.RopeScaling != "" {
		s.RopeFactor = cmp.Or(s.RopeFactor, 8)
	}
	if s.RopeScaling == Llama3 {
		s.RopeContext = cmp.Or(s.RopeContext, max(1, s.Context/8))
	}
	s.Tokenizer = cmp.Or(s.Tokenizer, map[string]string{gguf.Qwen2: gguf.PreQwen2}[s.Architecture], gguf.PreGPT2)
	s.Seed = cmp.Or(s.Seed, 1)
	s.Name = cmp.Or(s.Name, s.title())
	return s, s.check()
}

func (s Spec) title() string {
	return fmt.Sprintf("random-%s-%dx%d-%d:%dx%d", s.Architecture, s.Layers, s.Hidden, s.Heads, s.KVHeads, s.HeadDim)
}

func (s Spec) check() error {
	for _, f := range []struct {
		name               string
		value, least, most int
	}{
		{"layers", s.Layers, 1, 1 << 10}, {"hidden", s.Hidden, 2, 1 << 16}, {"heads", s.Heads, 1, 1 << 10},
		{"kv-heads", s.KVHeads, 1, 1 << 10}, {"head-dim", s.HeadDim, 2, 1 << 9}, {"ffn", s.FFN, 1, 1 << 18},
		{"vocab", s.Vocab, leastVocab, 1 << 20}, {"context", s.Context, 1, 1 << 20}, {"window", s.Window, 0, 1 << 20},
	} {
		if f.value < f.least || f.value > f.most {
			return impossible("%s is %d, want %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	switch {
	case !slices.Contains(gguf.Supported(), s.Architecture):
		return impossible("architecture %q is not supported, only %s", s.Architecture,
			strings.Join(gguf.Supported(), " and "))
	case s.Heads%s.KVHeads != 0:
		return impossible("%d heads are not a multiple of %d key-value heads", s.Heads, s.KVHeads)
	case s.HeadDim%2 != 0:
		return impossible("head-dim is %d, want an even number", s.HeadDim)
	case !(s.RopeBase > 1 && s.RopeBase < 1e12):
		return impossible("rope-base is %g, want a number above 1", s.RopeBase)
	case s.RopeScaling != "" && s.RopeScaling != Linear && s.RopeScaling != Llama3:
		return impossible("rope scaling %q is not supported, only %s and %s", s.RopeScaling, Linear, Llama3)
	case s.RopeScaling != "" && !(s.RopeFactor > 0 && s.RopeFactor < 1e6):
		return impossible("rope-factor is %g, want a number above 0", s.RopeFactor)
	case !slices.Contains(tokenizers, s.Tokenizer):
		most := len(tokenizers) - 1
		return impossible("tokenizer %q is not supported, only %s and %s", s.Tokenizer,
			strings.Join(tokenizers[:most], ", "), tokenizers[most])
	}
	return s.checkQwen2()
}

// checkQwen2 refuses what llama.cpp does not load, and what a qwen2's file cannot express.
func (s Spec) checkQwen2() error {
	switch {
	case s.Architecture != gguf.Qwen2:
	case s.Heads*s.HeadDim != s.Hidden:
		return impossible("a qwen2 of %d heads of %d needs a hidden size of %d, not %d", s.Heads, s.HeadDim,
			s.Heads*s.HeadDim,
			s.Hidden)
	case s.Window > 0:
		return impossible("a qwen2 cannot have a window, because its file does not say in which layers; use llama")
	case s.RopeScaling == Llama3:
		return impossible("a qwen2 has no factors for single frequencies; use linear scaling, or llama")
	}
	return nil
}

var tokenizers = []string{gguf.PreGPT2, gguf.PreSmolLM, gguf.PreLlama3, gguf.PreQwen2, SentencePiece}

func impossible(format string, args ...any) error {
	return fault.New(fault.Usage, "choose another shape", format, args...)
}

// architecture returns the shape as the reader reports it.
func (s Spec) architecture() gguf.Architecture {
	return gguf.Architecture{
		Name: s.Architecture, ContextLength: s.Context, EmbeddingLength: s.Hidden, BlockCount: s.Layers,
		FeedForwardLength: s.FFN,
		HeadCount:         s.Heads, HeadCountKV: s.KVHeads, HeadDim: s.HeadDim, VocabSize: s.Vocab, RMSEpsilon: 1e-5,
		RopeBase:      s.RopeBase,
		SlidingWindow: s.Window, AttentionBias: s.Bias, Tied: s.Tied,
	}
}
