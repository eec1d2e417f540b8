package mlc

import (
	"strings"

	"llmparity/internal/gguf"
	"llmparity/internal/modellib"
)

// config is mlc-chat-config.json: what WebLLM reads of it, and what MLC's other tools expect to find.
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
}

type tokenizerInfo struct {
	TokenPostproc string `json:"token_postproc_method"`
	PrependSpace  bool   `json:"prepend_space_in_encode"`
	StripSpace    bool   `json:"strip_space_in_decode"`
}

type conversation struct {
	Name            string            `json:"name"`
	SystemTemplate  string            `json:"system_template"`
	SystemMessage   string            `json:"system_message"`
	RenderEmpty     bool              `json:"render_empty_system_message"`
	SystemPrefix    []int             `json:"system_prefix_token_ids,omitempty"`
	AddRoleAfter    bool              `json:"add_role_after_system_message"`
	Roles           map[string]string `json:"roles"`
	RoleTemplates   map[string]string `json:"role_templates"`
	Messages        []string          `json:"messages"`
	Seps            []string          `json:"seps"`
	RoleContentSep  string            `json:"role_content_sep"`
	RoleEmptySep    string            `json:"role_empty_sep"`
	StopStr         []string          `json:"stop_str"`
	StopTokenIDs    []int             `json:"stop_token_ids"`
	FunctionString  string            `json:"function_string"`
	FunctionCalling bool              `json:"use_function_calling"`
}

func chatConfig(s modellib.Shape, v gguf.Vocabulary) config {
	stop := stopTokens(v)
	c := config{
		Version: "0.1.0", ModelType: "llama", Quantization: "q0f32", ModelConfig: s, VocabSize: s.VocabSize,
		ContextWindowSize: s.ContextWindowSize, SlidingWindowSize: -1, AttentionSinkSize: -1,
		PrefillChunkSize: s.PrefillChunkSize, TensorShards: 1, PipelineStages: 1,
		Temperature: 1, TopP: 1, RepetitionPenalty: 1,
		TokenizerFiles: []string{"tokenizer.json"},
		TokenizerInfo:  tokenizerInfo{TokenPostproc: "byte_level"},
		ConvTemplate:   chatML(v, stop),
		EOSToken:       stop,
	}
	if v.BOS >= 0 {
		c.BOSToken = &v.BOS
	}
	return c
}

// stopTokens are those that end an answer: the model's own, and the usual ones that it has, as llama.cpp takes them.
func stopTokens(v gguf.Vocabulary) []int {
	stop := []int{}
	for id, text := range v.Tokens {
		usual := v.Types[id] == gguf.TokenControl && (text == "<|im_end|>" || text == "<|endoftext|>" || text == "<|eot_id|>")
		if usual || id == v.EOS {
			stop = append(stop, id)
		}
	}
	return stop
}

func isChatML(v gguf.Vocabulary) bool {
	return strings.Contains(v.ChatTemplate, "<|im_start|>") && strings.Contains(v.ChatTemplate, "<|im_end|>")
}

// chatML is the conversation as the model's template lays it out, without a system message unless the caller gives one:
// a default one in a template can't be told from its Jinja code without running it.
func chatML(v gguf.Vocabulary, stop []int) conversation {
	c := conversation{
		Name:           "chatml",
		SystemTemplate: "<|im_start|>system\n{system_message}<|im_end|>\n",
		AddRoleAfter:   true,
		Roles: map[string]string{
			"user": "<|im_start|>user", "assistant": "<|im_start|>assistant", "tool": "<|im_start|>tool",
		},
		RoleTemplates: map[string]string{
			"user": "{user_message}", "assistant": "{assistant_message}", "tool": "{tool_message}",
		},
		Messages: []string{}, Seps: []string{"<|im_end|>\n"}, RoleContentSep: "\n", RoleEmptySep: "\n",
		StopStr: []string{}, StopTokenIDs: stop,
	}
	if v.AddBOS && v.BOS >= 0 {
		c.SystemPrefix = []int{v.BOS}
	}
	return c
}
