package mlc

import (
	"slices"
	"strings"

	"llmparity/internal/gguf"
)

// conversation is WebLLM's format of a chat. WebLLM encodes each message separately, so for a SentencePiece tokenizer
// every message is the start of a text.
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

// chat returns the conversation for the model's chat template, or ChatML and false if the template is unknown. It has
// no default system message and no dates, because finding them would require running the Jinja template.
func chat(v gguf.Vocabulary) (c conversation, known bool) {
	lacks := func(text string) bool { return !strings.Contains(v.ChatTemplate, text) }
	has := func(all ...string) bool { return !slices.ContainsFunc(all, lacks) }
	known = true
	switch {
	case has("<|im_start|>", "<|im_sep|>", "<|im_end|>"):
		c = phi4()
	case has("<|im_start|>", "<|im_end|>"):
		c = chatML()
	case has("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"):
		c = llama3()
	case has("[INST]", "[/INST]", "<<SYS>>"):
		c = llama2(text(v, v.BOS), text(v, v.EOS))
	case has("<start_of_turn>", "<end_of_turn>"):
		c = gemma()
	case has("<|end|>", "<|assistant|>") && slices.Contains(v.Tokens, "<|end|>"):
		c = phi3(has(`\n`))
	case has("<|user|>", "<|assistant|>") && !has("<|end|>") && (has("eos_token") || has(text(v, v.EOS))):
		c = zephyr(text(v, v.EOS))
	default:
		c, known = chatML(), false
	}
	c.RoleTemplates = map[string]string{
		"user": "{user_message}", "assistant": "{assistant_message}", "tool": "{tool_message}",
	}
	c.Messages, c.StopStr, c.StopTokenIDs = []string{}, []string{}, stopTokens(v)
	if begin := strings.HasPrefix(c.SystemTemplate, text(v, v.BOS)); v.AddBOS && !begin {
		c.SystemPrefix = []int{v.BOS}
	}
	return c, known
}

// text returns the text of a token, or a text that never occurs.
func text(v gguf.Vocabulary, id int) string {
	if id < 0 {
		return "\x00"
	}
	return v.Tokens[id]
}

func roles(user, assistant, tool string) map[string]string {
	return map[string]string{"user": user, "assistant": assistant, "tool": tool}
}

func chatML() conversation {
	return conversation{
		Name: "chatml", SystemTemplate: "<|im_start|>system\n{system_message}<|im_end|>\n", AddRoleAfter: true,
		Roles: roles("<|im_start|>user", "<|im_start|>assistant", "<|im_start|>tool"),
		Seps:  []string{"<|im_end|>\n"}, RoleContentSep: "\n", RoleEmptySep: "\n",
	}
}

func llama3() conversation {
	header := func(role string) string { return "<|start_header_id|>" + role }
	const end = "<|end_header_id|>\n\n"
	return conversation{
		Name: "llama-3", SystemTemplate: header("system") + end + "{system_message}<|eot_id|>", AddRoleAfter: true,
		Roles: roles(header("user"), header("assistant"), header("ipython")),
		Seps:  []string{"<|eot_id|>"}, RoleContentSep: end, RoleEmptySep: end,
	}
}

// llama2 puts the system message into the first user message. Each user message starts with BOS, because WebLLM may
// encode the last round alone.
func llama2(bos, eos string) conversation {
	return conversation{
		Name: "llama-2", SystemTemplate: bos + "[INST] <<SYS>>\n{system_message}\n<</SYS>>\n\n",
		Roles: roles(bos+"[INST]", "[/INST]", bos+"[INST]"),
		Seps:  []string{" ", " " + eos}, RoleContentSep: " ", RoleEmptySep: "",
	}
}

// phi4 is the template of Phi-4; Phi-4-mini has phi3's.
func phi4() conversation {
	c := chatML()
	c.Name, c.SystemTemplate = "phi-4", "<|im_start|>system<|im_sep|>{system_message}<|im_end|>"
	c.Seps, c.RoleContentSep, c.RoleEmptySep = []string{"<|im_end|>"}, "<|im_sep|>", "<|im_sep|>"
	return c
}

// phi3 has newlines after roles and messages, or none.
func phi3(newlines bool) conversation {
	line := ""
	if newlines {
		line = "\n"
	}
	return conversation{
		Name: "phi-3", SystemTemplate: "<|system|>" + line + "{system_message}<|end|>" + line, AddRoleAfter: true,
		Roles: roles("<|user|>", "<|assistant|>", "<|user|>"),
		Seps:  []string{"<|end|>" + line}, RoleContentSep: line, RoleEmptySep: line,
	}
}

// gemma puts the system message into the first user message.
func gemma() conversation {
	const user, model = "<start_of_turn>user", "<start_of_turn>model"
	return conversation{
		Name: "gemma", SystemTemplate: user + "\n{system_message}\n\n", Roles: roles(user, model, user),
		Seps: []string{"<end_of_turn>\n"}, RoleContentSep: "\n", RoleEmptySep: "\n",
	}
}

func zephyr(eos string) conversation {
	return conversation{
		Name: "zephyr", SystemTemplate: "<|system|>\n{system_message}" + eos + "\n", AddRoleAfter: true,
		Roles: roles("<|user|>", "<|assistant|>", "<|user|>"),
		Seps:  []string{eos + "\n"}, RoleContentSep: "\n", RoleEmptySep: "\n",
	}
}
