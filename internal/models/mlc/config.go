package mlc

import (
	"slices"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/modellib"
)

// config is mlc-chat-config.json: what WebLLM reads, and what MLC's other tools expect.
type config struct {
	Version           string         `json:"version"`
	ModelType         string         `json:"model_type"`
	Quantization      string         `json:"quantization"`
	ModelConfig       modellib.Shape `json:"model_config"`
	VocabSize         int            `json:"vocab_size"`
	ContextWindowSize int            `json:"context_window_size"`
	SlidingWindowSize int            `json:"sliding_window_size"`
	AttentionSinkSize int            `json:"attention_sink_size"`
	PrefillChunkSize  int            `json:"prefill_chunk_size"`
	TensorShards      int            `json:"tensor_parallel_shards"`
	PipelineStages    int            `json:"pipeline_parallel_stages"`
	Temperature       float64        `json:"temperature"`
	TopP              float64        `json:"top_p"`
	PresencePenalty   float64        `json:"presence_penalty"`
	FrequencyPenalty  float64        `json:"frequency_penalty"`
	RepetitionPenalty float64        `json:"repetition_penalty"`
	TokenizerFiles    []string       `json:"tokenizer_files"`
	TokenizerInfo     tokenizerInfo  `json:"tokenizer_info"`
	ConvTemplate      conversation   `json:"conv_template"`
	PadToken          int            `json:"pad_token_id"`
	BOSToken          *int           `json:"bos_token_id,omitempty"`
	EOSToken          []int          `json:"eos_token_id"`
	// PromptPrefix is our own field: the tokens to put before a raw prompt, because WebLLM encodes raw prompts without
	// special tokens, whatever tokenizer.json says.
	PromptPrefix []int `json:"prompt_prefix_token_ids,omitempty"`
}

type tokenizerInfo struct {
	TokenPostproc string `json:"token_postproc_method"`
	PrependSpace  bool   `json:"prepend_space_in_encode"`
	StripSpace    bool   `json:"strip_space_in_decode"`
}

// chatConfig also reports whether the model's chat template is known.
func chatConfig(s modellib.Shape, quantization string, v gguf.Vocabulary) (c config, knownTemplate bool) {
	conv, knownTemplate := chat(v)
	c = config{
		Version: "0.1.0", ModelType: s.ModelType, Quantization: quantization, ModelConfig: s, VocabSize: s.VocabSize,
		ContextWindowSize: s.ContextWindowSize, SlidingWindowSize: -1, AttentionSinkSize: -1,
		PrefillChunkSize: s.PrefillChunkSize, TensorShards: 1, PipelineStages: 1,
		Temperature: 1, TopP: 1, RepetitionPenalty: 1,
		TokenizerFiles: []string{"tokenizer.json"},
		TokenizerInfo:  tokenizerInfo{TokenPostproc: "byte_level"},
		ConvTemplate:   conv,
		EOSToken:       slices.Clone(conv.StopTokenIDs),
	}
	// The model's own comes first.
	if own := slices.Index(c.EOSToken, v.EOS); own > 0 {
		c.EOSToken = slices.Insert(slices.Delete(c.EOSToken, own, own+1), 0, v.EOS)
	}
	if v.Kind == gguf.SentencePiece {
		c.TokenizerInfo = tokenizerInfo{TokenPostproc: "byte_fallback", PrependSpace: v.SpacePrefix,
			StripSpace: v.SpacePrefix}
	}
	if v.BOS >= 0 {
		c.BOSToken = &v.BOS
	}
	if v.AddBOS {
		c.PromptPrefix = []int{v.BOS}
	}
	return c, knownTemplate
}

// stopTokens returns the tokens that end an answer: the model's EOS, and common ones in its vocabulary, as in
// llama.cpp.
func stopTokens(v gguf.Vocabulary) []int {
	stop := []int{}
	for id, text := range v.Tokens {
		if id == v.EOS || v.Types[id] == gguf.TokenControl && slices.Contains(ends, text) {
			stop = append(stop, id)
		}
	}
	return stop
}

// ends are the common tokens that end an answer.
var ends = []string{"</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>",
	"<|end|>", "<end_of_turn>"}
