package modellib

// Shape is the part of a model that a library is compiled for: sizes, never weights. The compiler checks it.
type Shape struct {
	ModelType         string  `json:"model_type"` // an architecture, which names weights
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
	// DType is the dtype of activations and plain weights: float32 or float16. Sums are always float32.
	DType string `json:"dtype"`

	// KVDType is the dtype of the KV cache and of what attention reads and writes; "": DType.
	KVDType string `json:"kv_dtype,omitempty"`

	// LocalLayers have the sliding window, and RopeLocalTheta without RopeFactors; none: all layers have the window.
	LocalLayers    []int   `json:"local_layers,omitempty"`
	RopeLocalTheta float64 `json:"rope_local_theta,omitempty"` // 0: RopeTheta
	// RotaryDim is the number of a head's values that are rotated, from the first; 0: all.
	RotaryDim int `json:"rotary_dim,omitempty"`
	// RopeAttentionFactor multiplies rotated values; 0: 1.
	RopeAttentionFactor float64 `json:"rope_attention_factor,omitempty"`
	QKNorm              bool    `json:"qk_norm,omitempty"`         // heads of queries and keys are normalised
	PostNorms           bool    `json:"post_norms,omitempty"`      // so is what is added to the hidden state
	GELU                bool    `json:"gelu,omitempty"`            // the gate is a GELU, not a SiLU
	EmbeddingScale      float64 `json:"embedding_scale,omitempty"` // 0: 1
	// QueryPreAttnScalar is the number whose square root divides scores; 0: HeadDim.
	QueryPreAttnScalar    float64 `json:"query_pre_attn_scalar,omitempty"`
	AttnLogitSoftcapping  float64 `json:"attn_logit_softcapping,omitempty"`  // of scores; 0: none
	FinalLogitSoftcapping float64 `json:"final_logit_softcapping,omitempty"` // of logits; 0: none

	// WeightTypes has the types of the matrices that are not plain, by name: one, or one for each joined matrix.
	WeightTypes  map[string][]string `json:"weight_types,omitempty"`
	Quantization string              `json:"quantization,omitempty"` // MLC's name of these types; "": by DType
}

// Variant is the kind of machine and the purpose that a library is compiled for. It does not change what a model says.
type Variant struct {
	// Kernels is "software", for adapters that run on a CPU: no thread waits for another. Or "gpu": threads share what
	// they read. Or "mlc": MLC's graph by TVM's own rules, for GPUs.
	Kernels string `json:"kernels"`
	// Sort is how much of the probabilities is sorted for sampling: "partial", as much as sampling reads, or "full".
	Sort string `json:"sort"`
}

func (v Variant) String() string { return v.Kernels + " kernels, " + v.Sort + " sort" }
