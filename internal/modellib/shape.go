package modellib

import (
	"fmt"

	"llmparity/internal/fault"
)

// Shape is what of a model a library is compiled for: the numbers, never the weights.
type Shape struct {
	ModelType         string  `json:"model_type"`
	HiddenSize        int     `json:"hidden_size"`
	IntermediateSize  int     `json:"intermediate_size"`
	NumHiddenLayers   int     `json:"num_hidden_layers"`
	NumAttentionHeads int     `json:"num_attention_heads"`
	NumKeyValueHeads  int     `json:"num_key_value_heads"`
	HeadDim           int     `json:"head_dim"`
	VocabSize         int     `json:"vocab_size"`
	RopeTheta         float64 `json:"rope_theta"`
	RMSNormEps        float64 `json:"rms_norm_eps"`
	TieWordEmbeddings bool    `json:"tie_word_embeddings"`
	ContextWindowSize int     `json:"context_window_size"`
	PrefillChunkSize  int     `json:"prefill_chunk_size"`
	DType             string  `json:"dtype"`
}

// Validate says why no library can be compiled for s. The compiler checks the same: it may be run on its own.
func (s Shape) Validate() error {
	if s.ModelType != "llama" {
		return fault.New(fault.UnknownArch, "only llama models can be compiled for WebLLM", "model type %q", s.ModelType)
	}
	if s.DType != "float32" {
		return fault.New(fault.UnknownArch, "only float32 can be compiled for WebLLM", "dtype %q", s.DType)
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
			return bad("%s is %d, not from 1 to %d", f.name, f.value, f.most)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"rope_theta", s.RopeTheta}, {"rms_norm_eps", s.RMSNormEps}} {
		if !(f.value > 0 && f.value < 1e12) {
			return bad("%s is %g, not a number above 0", f.name, f.value)
		}
	}
	return s.related()
}

// related checks what the fields must be to one another.
func (s Shape) related() error {
	switch {
	case s.NumAttentionHeads%s.NumKeyValueHeads != 0:
		return bad("%d attention heads can't share %d key-value heads evenly", s.NumAttentionHeads, s.NumKeyValueHeads)
	case s.HeadDim%2 != 0:
		return bad("head_dim %d is odd", s.HeadDim)
	case s.PrefillChunkSize > s.ContextWindowSize:
		return bad("prefill_chunk_size %d exceeds context_window_size %d", s.PrefillChunkSize, s.ContextWindowSize)
	}
	return nil
}

func bad(format string, args ...any) error {
	return fault.New(fault.BadModel, "no model library can be compiled for it", "model shape: %s", fmt.Sprintf(format, args...))
}
