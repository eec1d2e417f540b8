package tiny

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
)

// SentencePiece is the tokenizer with byte fallback. Others are named by their pre-tokenizers.
const SentencePiece = "sentencepiece"

// The kinds of rotation scaling in a Spec.
const (
	Linear = "linear"
	Llama3 = "llama3"   // the factor for low frequencies, none for high ones, smooth in between
	Long   = "longrope" // two sets of factors, for contexts up to RopeContext and for longer ones
)

// Spec is the shape of a random model. Resolved replaces zeros by defaults.
type Spec struct {
	Name         string  `json:"name"`         // general.name
	Architecture string  `json:"architecture"` // one of gguf.Supported
	Layers       int     `json:"layers"`
	Hidden       int     `json:"hidden"`
	Heads        int     `json:"heads"`
	KVHeads      int     `json:"kv_heads"`
	HeadDim      int     `json:"head_dim"`
	FFN          int     `json:"ffn"`
	Vocab        int     `json:"vocab"`
	Context      int     `json:"context"`
	Window       int     `json:"window,omitempty"`        // a sliding window; 0 for none
	AttentionCap float64 `json:"attention_cap,omitempty"` // soft cap of scores; 0 for none
	OutputCap    float64 `json:"output_cap,omitempty"`    // soft cap of logits; 0 for none
	RotaryDim    int     `json:"rotary_dim,omitempty"`    // values of a head that are rotated; 0 for all
	LocalBase    float64 `json:"local_base,omitempty"`    // RoPE base of layers with a window; 0 for RopeBase
	Fused        bool    `json:"fused,omitempty"`         // queries, keys and values, and a phi3's gate, are one tensor
	Tied         bool    `json:"tied"`                    // a gemma2 always is
	Bias         bool    `json:"bias"`                    // of queries, keys and values; a qwen2 has them always
	RopeBase     float64 `json:"rope_base"`
	NormEpsilon  float64 `json:"norm_epsilon,omitempty"` // of RMS norms; 0 for 1e-5
	RopeScaling  string  `json:"rope_scaling,omitempty"` // Linear or Llama3; "" for none
	RopeFactor   float64 `json:"rope_factor,omitempty"`
	RopeContext  int     `json:"rope_context,omitempty"` // the context before Llama3's or Long's scaling
	Tokenizer    string  `json:"tokenizer"`              // SentencePiece, or a pre-tokenizer: gguf.PreGPT2 and so on
	Type         string  `json:"type,omitempty"`         // of matrices: Q4_0 to Q8_0, Q4_K to Q6_K; "" for F32
	SecondType   string  `json:"second_type,omitempty"`  // of the head, and of the first layer's values and last product
	Seed         uint64  `json:"seed"`

	scales scales // of weights; zero for the usual ones
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
	s.Bias, s.Tied = s.Bias || s.Architecture == gguf.Qwen2, s.Tied || s.Architecture == gguf.Gemma2
	s.Fused = s.Fused || s.Architecture == gguf.Phi3
	if s.Architecture == gguf.Gemma3 && s.Window > 0 {
		s.LocalBase = cmp.Or(s.LocalBase, 10000)
	}
	if s.RopeScaling != "" {
		s.RopeFactor = cmp.Or(s.RopeFactor, 8)
	}
	if s.RopeScaling == Llama3 || s.RopeScaling == Long {
		s.RopeContext = cmp.Or(s.RopeContext, max(1, s.Context/8))
	}
	s.Tokenizer = cmp.Or(s.Tokenizer, tokenizerOf[s.Architecture], gguf.PreGPT2)
	s.Seed, s.scales = cmp.Or(s.Seed, 1), cmp.Or(s.scales, usual)
	s.Name = cmp.Or(s.Name, fmt.Sprintf("random-%s-%dx%d-%d:%dx%d", s.Architecture, s.Layers, s.Hidden, s.Heads,
		s.KVHeads, s.HeadDim))
	return s, s.check()
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
			strings.Join(gguf.Supported(), ", "))
	case s.Heads%s.KVHeads != 0:
		return impossible("%d heads are not a multiple of %d key-value heads", s.Heads, s.KVHeads)
	case s.HeadDim%2 != 0:
		return impossible("head-dim is %d, want an even number", s.HeadDim)
	case !(s.RopeBase > 1 && s.RopeBase < 1e12):
		return impossible("rope-base is %g, want a number above 1", s.RopeBase)
	case !(s.NormEpsilon >= 0 && s.NormEpsilon < 1):
		return impossible("norm-epsilon is %g, want a number below 1", s.NormEpsilon)
	case s.RopeScaling != "" && s.RopeScaling != Linear && s.RopeScaling != Llama3 && s.RopeScaling != Long:
		return impossible("rope scaling %q is not supported, only %s, %s and %s", s.RopeScaling, Linear, Llama3, Long)
	case s.RopeScaling != "" && !(s.RopeFactor > 0 && s.RopeFactor < 1e6):
		return impossible("rope-factor is %g, want a number above 0", s.RopeFactor)
	case !slices.Contains(tokenizers, s.Tokenizer):
		most := len(tokenizers) - 1
		return impossible("tokenizer %q is not supported, only %s and %s", s.Tokenizer,
			strings.Join(tokenizers[:most], ", "), tokenizers[most])
	}
	if err := s.checkTypes(); err != nil {
		return err
	}
	return s.checkArchitecture()
}

func (s Spec) checkTypes() error {
	for _, name := range []string{s.Type, s.SecondType} {
		t, _ := gguf.TypeNamed(name)
		if name == "" {
			continue
		}
		if _, random := randomBlocks[t]; !random {
			return impossible("type %q is not supported, only Q4_0 to Q8_0 and Q4_K to Q6_K", name)
		}
		values, _ := t.Block()
		for _, width := range []int{s.Hidden, s.FFN, s.Heads * s.HeadDim} {
			if int64(width)%values != 0 {
				return impossible("a matrix of %d columns cannot be %v, whose blocks have %d values", width, t, values)
			}
		}
	}
	return nil
}

// checkArchitecture refuses what llama.cpp does not load, and what an architecture's file cannot express.
func (s Spec) checkArchitecture() error {
	is := func(names ...string) bool { return slices.Contains(names, s.Architecture) }
	gemma := is(gguf.Gemma2, gguf.Gemma3)
	switch {
	case is(gguf.Qwen2, gguf.Phi3) && s.Heads*s.HeadDim != s.Hidden:
		return impossible("a %s of %d heads of %d needs a hidden size of %d, not %d", s.Architecture, s.Heads, s.HeadDim,
			s.Heads*s.HeadDim, s.Hidden)
	case is(gguf.Qwen2, gguf.Qwen3) && s.Window > 0:
		return impossible("a %s cannot have a window, because its file does not say in which layers; use llama",
			s.Architecture)
	case !is(gguf.Llama) && s.RopeScaling == Llama3:
		return impossible("a %s has no factors for single frequencies; use linear scaling, or llama", s.Architecture)
	case !is(gguf.Phi3) && (s.RopeScaling == Long || s.RotaryDim > 0):
		return impossible("a %s has neither %s nor a rotary size; use phi3", s.Architecture, Long)
	case s.RotaryDim%2 != 0 || s.RotaryDim < 0 || s.RotaryDim > s.HeadDim:
		return impossible("rotary-dim is %d, want an even number up to %d", s.RotaryDim, s.HeadDim)
	case !is(gguf.Gemma2) && s.AttentionCap != 0, !gemma && s.OutputCap != 0:
		return impossible("a %s has no such cap; use gemma2, which has caps of scores and logits, or gemma3, which has one of logits",
			s.Architecture)
	case !(s.AttentionCap >= 0 && s.OutputCap >= 0):
		return impossible("a cap is below 0")
	case s.LocalBase != 0 && !(is(gguf.Gemma3) && s.Window > 0):
		return impossible("only a gemma3 with a window has a local base")
	case s.LocalBase != 0 && !(s.LocalBase > 1 && s.LocalBase < 1e12):
		return impossible("local-base is %g, want a number above 1", s.LocalBase)
	}
	return nil
}

// tokenizerOf has the tokenizers that architectures come with.
var tokenizerOf = map[string]string{gguf.Qwen2: gguf.PreQwen2, gguf.Qwen3: gguf.PreQwen2, gguf.Gemma2: SentencePiece,
	gguf.Gemma3: SentencePiece, gguf.Phi3: SentencePiece}

var tokenizers = []string{gguf.PreGPT2, gguf.PreSmolLM, gguf.PreLlama3, gguf.PreQwen2, SentencePiece}

func impossible(format string, args ...any) error {
	return fault.New(fault.Usage, "choose another shape", format, args...)
}

// architecture returns the shape as the reader reports it.
func (s Spec) architecture() gguf.Architecture {
	return gguf.Architecture{
		Name: s.Architecture, ContextLength: s.Context, EmbeddingLength: s.Hidden, BlockCount: s.Layers,
		FeedForwardLength: s.FFN, HeadCount: s.Heads, HeadCountKV: s.KVHeads, HeadDim: s.HeadDim, VocabSize: s.Vocab,
		RMSEpsilon: cmp.Or(s.NormEpsilon, 1e-5),
		RopeBase:   s.RopeBase, RotaryDim: s.RotaryDim, SlidingWindow: s.Window, AttentionBias: s.Bias,
		Tied: s.Tied, FusedQKV: s.Fused, FusedGate: s.Fused && s.Architecture == gguf.Phi3,
	}
}
