package modellib

import (
	"fmt"
	"slices"

	"llmparity/internal/fault"
)

// Shape is the part of a model that a library is compiled for: sizes, never weights.
type Shape struct {
	ModelType         string  `json:"model_type"` // llama or qwen2, which name a weight differently
	HiddenSize        int     `json:"hidden_size"`
	IntermediateSize  int     `json:"intermediate_size"`
	NumHiddenLayers   int     `json:"num_hidden_layers"`
	NumAttentionHeads int     `json:"num_attention_heads"`
	NumKeyValueHeads  int     `json:"num_key_value_heads"`
	HeadDim           int     `json:"head_dim"`
	VocabSize         int     `json:"vocab_size"`
	RopeTheta         float64 `json:"rope_theta"`
	// RopeFactors divide the rotation's frequencies, one per pair of a head's values; none leave them unchanged.
	RopeFactors       []float64 `json:"rope_factors,omitempty"`
	RMSNormEps        float64   `json:"rms_norm_eps"`
	AttentionBias     bool      `json:"attention_bias"` // queries, keys and values have biases
	TieWordEmbeddings bool      `json:"tie_word_embeddings"`
	ContextWindowSize int       `json:"context_window_size"`
	// SlidingWindowSize is the number of tokens that a token sees, itself included; 0: all.
	SlidingWindowSize int `json:"sliding_window_size"`
	PrefillChunkSize  int `json:"prefill_chunk_size"`
	// DType is the dtype of weights, activations and KV cache: float32 or float16. Sums are always float32.
	DType string `json:"dtype"`
}

// Validate returns why no library can be compiled for s. The compiler checks the same, because it can run alone.
func (s Shape) Validate() error {
	if !slices.Contains([]string{"llama", "qwen2"}, s.ModelType) {
		return fault.New(fault.UnknownArch, "only llama and qwen2 models can be compiled for WebLLM", "model type %q",
			s.ModelType)
	}
	if !slices.Contains([]string{"float32", "float16"}, s.DType) {
		return fault.New(fault.UnknownArch, "only float32 and float16 can be compiled for WebLLM", "dtype %q", s.DType)
	}
	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"hidden_size", s.HiddenSize, 1 << 16},
		{"intermediate_size", s.IntermediateSize, 1 << 18},
		{"num_hidden_layers", s.NumHiddenLayers, 1 << 10},
		{"num_attention_heads", s.NumAttentionHeads, 1 << 10},
		{"num_key_value_heads", s.NumKeyValueHeads, 1 << 10},
		{"head_dim", s.HeadDim, 1 << 9},
		{"vocab_size", s.VocabSize, 1 << 20},
		{"context_window_size", s.ContextWindowSize, 1 << 20},
		{"prefill_chunk_size", s.PrefillChunkSize, 1 << 14},
	} {
		if f.value < 1 || f.value > f.most {
			return bad("%s is %d, want 1 to %d", f.name, f.value, f.most)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"rope_theta", s.RopeTheta}, {"rms_norm_eps", s.RMSNormEps}} {
		if !positive(f.value) {
			return bad("%s is %g, want a number above 0", f.name, f.value)
		}
	}
	return s.related()
}

// related checks relations between the fields.
func (s Shape) related() error {
	switch {
	case s.NumAttentionHeads%s.NumKeyValueHeads != 0:
		return bad("%d attention heads are not a multiple of %d key-value heads", s.NumAttentionHeads, s.NumKeyValueHeads)
	case s.HeadDim%2 != 0:
		return bad("head_dim %d is odd", s.HeadDim)
	case s.PrefillChunkSize > s.ContextWindowSize:
		return bad("prefill_chunk_size %d exceeds context_window_size %d", s.PrefillChunkSize, s.ContextWindowSize)
	case s.SlidingWindowSize < 0 || s.SlidingWindowSize >= s.ContextWindowSize:
		return bad("sliding_window_size %d is not below context_window_size %d", s.SlidingWindowSize,
			s.ContextWindowSize)
	case s.ModelType == "qwen2" && !s.AttentionBias:
		return bad("attention_bias is false, but qwen2 has biases")
	case s.DType == "float16" && s.HiddenSize%2 != 0:
		return bad("hidden_size %d is odd, but a float16 buffer must fill whole words", s.HiddenSize)
	case len(s.RopeFactors) != 0 && len(s.RopeFactors) != s.HeadDim/2:
		return bad("%d rope_factors, want half of head_dim %d", len(s.RopeFactors), s.HeadDim)
	}
	for _, f := range s.RopeFactors {
		if !positive(f) {
			return bad("rope_factors contain %g, want numbers above 0", f)
		}
	}
	return nil
}

// positive excludes NaN and infinity.
func positive(v float64) bool { return v > 0 && v < 1e12 }

func bad(format string, args ...any) error {
	return fault.New(fault.BadModel, "no model library can be compiled for it", "model shape: %s",
		fmt.Sprintf(format, args...))
}
