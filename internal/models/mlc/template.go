package mlc

import (
	"slices"
	"strings"

	"llmparity/internal/models/gguf"
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
	bos, eos := text(v, v.BOS), text(v, v.EOS)
	c, known = turns("chatml", "<|im_start|>", "", "tool", "\n", "<|im_end|>\n"), true
	switch {
	case has("<|im_start|>", "<|im_sep|>", "<|im_end|>"): // Phi-4; Phi-4-mini has phi-3's
		c = turns("phi-4", "<|im_start|>", "", "tool", "<|im_sep|>", "<|im_end|>")
	case has("<|im_start|>", "<|im_end|>"):
	case has("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"):
		c = turns("llama-3", "<|start_header_id|>", "", "ipython", "<|end_header_id|>\n\n", "<|eot_id|>")
	case has("[INST]", "[/INST]", "<<SYS>>"): // BOS before each of the user: WebLLM may encode the last round alone
		c = conversation{Name: "llama-2", SystemTemplate: bos + "[INST] <<SYS>>\n{system_message}\n<</SYS>>\n\n",
			Roles: roles(bos+"[INST]", "[/INST]", bos+"[INST]"), Seps: []string{" ", " " + eos}, RoleContentSep: " "}
	case has("<start_of_turn>", "<end_of_turn>"):
		const user, model = "<start_of_turn>user", "<start_of_turn>model"
		c = conversation{Name: "gemma", SystemTemplate: user + "\n{system_message}\n\n",
			Roles: roles(user, model, user), Seps: []string{"<end_of_turn>\n"},
			RoleContentSep: "\n", RoleEmptySep: "\n"}
	case has("<|end|>", "<|assistant|>") && slices.Contains(v.Tokens, "<|end|>"):
		line := "" // newlines after roles and messages, or none
		if has(`\n`) {
			line = "\n"
		}
		c = turns("phi-3", "<|", "|>", "user", line, "<|end|>"+line)
	case has("<|user|>", "<|assistant|>") && !has("<|end|>") && (has("eos_token") || has(eos)):
		c = turns("zephyr", "<|", "|>", "user", "\n", eos+"\n")
	default:
		known = false
	}
	c.RoleTemplates = map[string]string{
		"user": "{user_message}", "assistant": "{assistant_message}", "tool": "{tool_message}",
	}
	c.Messages, c.StopStr, c.StopTokenIDs = []string{}, []string{}, stopTokens(v)
	if begin := strings.HasPrefix(c.SystemTemplate, bos); v.AddBOS && !begin {
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

// turns describes a chat whose messages all begin with before, the role and after, followed by between, the text and
// end. tool is the role of a tool's messages. In chats of llama-2 and gemma, the user's first message contains the
// system message.
func turns(name, before, after, tool, between, end string) conversation {
	head := func(role string) string { return before + role + after }
	return conversation{Name: name, SystemTemplate: head("system") + between + "{system_message}" + end,
		AddRoleAfter: true, Roles: roles(head("user"), head("assistant"), head(tool)), Seps: []string{end},
		RoleContentSep: between, RoleEmptySep: between}
}
