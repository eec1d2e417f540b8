package modellib

// Shape is the part of a model that a library is compiled for: sizes, never weights. The compiler checks it.
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
