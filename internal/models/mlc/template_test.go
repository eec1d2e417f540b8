package mlc

import (
	"slices"
	"strings"
	"testing"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/modellib"
	"llmparity/internal/models/tokenizer/tokenizertest"
)

// laidOut puts a chat of a system message, if any, a question, an answer and a question together as WebLLM does.
func laidOut(c conversation, system string) string {
	var s strings.Builder
	if system != "" {
		s.WriteString(strings.ReplaceAll(c.SystemTemplate, "{system_message}", system))
	}
	for i, text := range []string{"Why?", "So.", "How?"} {
		role := []string{"user", "assistant"}[i%2]
		if system == "" || c.AddRoleAfter || i > 0 {
			s.WriteString(c.Roles[role] + c.RoleContentSep)
		}
		s.WriteString(strings.ReplaceAll(c.RoleTemplates[role], "{"+role+"_message}", text) + c.Seps[i%len(c.Seps)])
	}
	return s.String() + c.Roles["assistant"] + c.RoleEmptySep
}

// templates are the models' own, with what they make of a chat without and with a system message, BOS
// left out.
var templates = []struct{ name, jinja, plain, system string }{
	{"chatml", chatMLTemplate,
		"<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\nSo.<|im_end|>\n<|im_start|>user\nHow?<|im_end|>\n<|im_start|>assistant\n",
		"<|im_start|>system\nBe brief.<|im_end|>\n"},
	{"llama-3", `{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}`,
		"<|start_header_id|>user<|end_header_id|>\n\nWhy?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nSo.<|eot_id|>" +
			"<|start_header_id|>user<|end_header_id|>\n\nHow?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
		"<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"},
	{"zephyr", `{% if message['role'] == 'user' %}{{ '<|user|>\n' + message['content'] + eos_token }}{% endif %}{{ '<|assistant|>' }}`,
		"<|user|>\nWhy?</s>\n<|assistant|>\nSo.</s>\n<|user|>\nHow?</s>\n<|assistant|>\n",
		"<|system|>\nBe brief.</s>\n"},
	{"phi-4", `{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}{{ '<|im_start|>assistant<|im_sep|>' }}`,
		"<|im_start|>user<|im_sep|>Why?<|im_end|><|im_start|>assistant<|im_sep|>So.<|im_end|>" +
			"<|im_start|>user<|im_sep|>How?<|im_end|><|im_start|>assistant<|im_sep|>",
		"<|im_start|>system<|im_sep|>Be brief.<|im_end|>"},
	{"phi-3", `{{'<|' + message['role'] + '|>' + '\n' + message['content'] + '<|end|>\n' }}{{ '<|assistant|>\n' }}`,
		"<|user|>\nWhy?<|end|>\n<|assistant|>\nSo.<|end|>\n<|user|>\nHow?<|end|>\n<|assistant|>\n",
		"<|system|>\nBe brief.<|end|>\n"},
	{"phi-3", `{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{{ '<|assistant|>' }}`,
		"<|user|>Why?<|end|><|assistant|>So.<|end|><|user|>How?<|end|><|assistant|>", "<|system|>Be brief.<|end|>"},
	{"gemma", `{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}`,
		"<start_of_turn>user\nWhy?<end_of_turn>\n<start_of_turn>model\nSo.<end_of_turn>\n" +
			"<start_of_turn>user\nHow?<end_of_turn>\n<start_of_turn>model\n",
		"<start_of_turn>user\nBe brief.\n\n"},
	{"llama-2", `{% set content = '<<SYS>>\n' + system_message + '\n<</SYS>>\n\n' %}{{ bos_token + '[INST] ' + content + ' [/INST]' }}`,
		"<s>[INST] Why? [/INST] So. </s><s>[INST] How? [/INST]", "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n"},
}

const chatMLTemplate = `{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}`

func TestChatTemplates(t *testing.T) {
	v := gguf.Vocabulary{Kind: gguf.SentencePiece, Tokens: []string{"<unk>", "<s>", "</s>", "<|end|>"},
		Types: []int32{2, 3, 3, 1},
		BOS:   1, EOS: 2,
		AddBOS: true}
	for _, want := range templates {
		v.ChatTemplate = want.jinja
		c, known := chat(v)
		if !known || c.Name != want.name || !slices.Equal(c.StopTokenIDs, []int{2}) {
			t.Errorf("%s: known %v as %s, stops at %v", want.name, known, c.Name, c.StopTokenIDs)
		}
		if got := laidOut(c, ""); got != want.plain {
			t.Errorf("%s: got %q", want.name, got)
		}
		first := want.plain
		if !c.AddRoleAfter { // the system message is inside the first user message
			first = strings.TrimPrefix(strings.TrimPrefix(first, "<s>[INST] "), "<start_of_turn>user\n")
		}
		if got := laidOut(c, "Be brief."); got != want.system+first {
			t.Errorf("%s: with a system message: got %q", want.name, got)
		}
		// One BOS, from the text or from the prefix.
		if prefix := len(c.SystemPrefix) == 1; prefix == strings.HasPrefix(laidOut(c, ""), "<s>") {
			t.Errorf("%s: prefix %v", want.name, c.SystemPrefix)
		}
	}
}

func TestUnknownTemplates(t *testing.T) {
	v := gguf.Vocabulary{Tokens: []string{"<s>", "</s>"}, Types: []int32{3, 3}, BOS: 0, EOS: 1}
	for _, v.ChatTemplate = range []string{"", "{{ message }}", "<|user|>\n{{ message }}<|end|>\n<|assistant|>",
		"{{ '[INST] ' + message + ' [/INST]' }}",
		"<|user|>{{ message }}<|assistant|>"} {
		if c, known := chat(v); known || c.Name != "chatml" {
			t.Errorf("%q: known %v as %s", v.ChatTemplate, known, c.Name)
		}
	}
}

func TestPromptBOS(t *testing.T) {
	for _, k := range tokenizertest.Kinds(t) {
		c, _ := chatConfig(modellib.Shape{}, "q0f32", k.Vocabulary)
		wants := k.Name == "spm" || k.Name == gguf.PreLlama3
		if k.Vocabulary.AddBOS != wants || slices.Equal(c.PromptPrefix, []int{k.Vocabulary.BOS}) != wants {
			t.Errorf("%s: BOS %d is wanted: %v; prefix %v", k.Name, k.Vocabulary.BOS, k.Vocabulary.AddBOS,
				c.PromptPrefix)
		}
		level := "byte_level"
		if strings.HasPrefix(k.Name, "spm") {
			level = "byte_fallback"
		}
		if i := c.TokenizerInfo; i.TokenPostproc != level || i.PrependSpace != (k.Name == "spm") ||
			i.StripSpace != i.PrependSpace {
			t.Errorf("%s: %+v", k.Name, i)
		}
	}
}
