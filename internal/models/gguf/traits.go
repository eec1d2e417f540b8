package gguf

import (
	"maps"
	"math"
	"slices"
)

// The supported architectures. The name in general.architecture also prefixes the keys of the model's sizes.
const (
	Llama  = "llama"
	Qwen2  = "qwen2"
	Qwen3  = "qwen3"
	Gemma2 = "gemma2"
	Gemma3 = "gemma3"
	Phi3   = "phi3"
)

// Traits are what differs between architectures.
type Traits struct {
	Class string // transformers' name, which its classes begin with
	// Interleaved: values 2i and 2i+1 of a head of queries and keys are rotated together, or else i and i+HeadDim/2.
	// llama.cpp stores the rows of a llama for the former.
	Interleaved bool
	QKNorm      bool // the heads of queries and keys are normalised
	PostNorms   bool // what attention and feed-forward add to the hidden state is normalised
	GELU        bool // the gate is a GELU, approximated by tanh, instead of a SiLU

	biased          bool // queries, keys and values always have biases; otherwise they may
	ropeFreqs       bool // a tensor may divide the frequencies of the rotation
	longRope        bool // two tensors may, one for long contexts, and a part of a head may be rotated
	fusedGate       bool // the gate and the projection up are one tensor
	scaledEmbedding bool

	windowed bool // a sliding window is supported: in all layers, or in those that period says
	period   int  // of so many layers, the last has no window, unless the file says otherwise; 0: all have it

	// understood are settings that are refused in other architectures.
	understood []string
	// window and caps are the values of files that lack the keys.
	window                  int
	attentionCap, outputCap float64
	localBase               float64 // the rotation's base in layers with a window; 0: that of the others
	// hiddenScaled is a number of layers. In models with as many QueryScalar is the hidden size over the heads, which
	// their files do not say.
	hiddenScaled int
}

var architectures = map[string]Traits{
	Llama: {Class: "Llama", Interleaved: true, ropeFreqs: true, windowed: true},
	Qwen2: {Class: "Qwen2", biased: true},
	Qwen3: {Class: "Qwen3", QKNorm: true},
	Gemma2: {Class: "Gemma2", windowed: true, period: 2, window: 4096, PostNorms: true, GELU: true,
		scaledEmbedding: true, attentionCap: 50, outputCap: 30, hiddenScaled: 46,
		understood: []string{keyPattern, keyAttentionCap, keyOutputCap}},
	Gemma3: {Class: "Gemma3", windowed: true, period: 6, localBase: 10000, QKNorm: true, PostNorms: true, GELU: true,
		scaledEmbedding: true, hiddenScaled: 62, understood: []string{keyPattern, keyOutputCap, keyLocalBase}},
	Phi3: {Class: "Phi3", windowed: true, longRope: true, fusedGate: true, understood: []string{keyMagnitude}},
}

// Keys of settings that only some architectures have.
const (
	keyWindow       = "attention.sliding_window"
	keyPattern      = "attention.sliding_window_pattern"
	keyAttentionCap = "attn_logit_softcapping"
	keyOutputCap    = "final_logit_softcapping"
	keyLocalBase    = "rope.freq_base_swa"
	keyMagnitude    = "rope.scaling.attn_factor"
)

// Supported lists the supported architectures.
func Supported() []string { return slices.Sorted(maps.Keys(architectures)) }

// Traits returns the traits of the model's architecture.
func (a Architecture) Traits() Traits { return architectures[a.Name] }

// EmbeddingScale returns the factor of embeddings; 0 for none.
func (a Architecture) EmbeddingScale() float64 {
	if !a.Traits().scaledEmbedding {
		return 0
	}
	return math.Sqrt(float64(a.EmbeddingLength))
}

// QueryScalar returns the number whose square root divides scores: the head size, with exceptions.
func (a Architecture) QueryScalar() int {
	if layers := a.Traits().hiddenScaled; layers > 0 && a.BlockCount == layers {
		return a.EmbeddingLength / a.HeadCount
	}
	return a.HeadDim
}
