package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/model"
)

// chatTemplate has what common templates have: roles, filters, conditions, and the beginning of the answer.
const chatTemplate = "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}[user] {{ m['content'] | trim }}" +
	"{{ eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"

// With --chat the model's own template is rendered once, and all engines that take ids compute the same ones, with one
// token at the beginning. An engine that ignores them finds the same in the rendered text.
func TestChatSendsTheSameIDs(t *testing.T) {
	path, err := model.Path(model.Tiny)
	check(t, err)
	cmd := program(t, "run", "--engines", "llamacpp,webllm", "--engine", "exec:mine="+exampleEngine(t), "--model",
		"chat.gguf", "--chat", "--prompt", " the quick ", "--max-tokens", "4", "--repetitions", "1")
	chat := filepath.Join(cmd.Dir, "chat.gguf")
	rewrite(t, path, chat, gguf.Entry{Key: "tokenizer.chat_template", Value: chatTemplate})
	if stdout, stderr, code := output(t, cmd); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	var ids []int
	engines := map[string]bool{}
	r := recorded(t, cmd.Dir)
	for _, a := range r.Attempts {
		for _, q := range a.Measured() {
			if ids == nil {
				ids = q.PromptIDs
			}
			if engines[r.CellByID(a.Cell).Engine] = true; !slices.Equal(q.PromptIDs, ids) || len(ids) == 0 {
				t.Errorf("%s: %v, want %v", r.CellByID(a.Cell).Engine, q.PromptIDs, ids)
			}
		}
	}
	f, err := gguf.Open(chat)
	check(t, err)
	defer f.Close()
	v, err := f.Vocabulary()
	check(t, err)
	if len(engines) != 3 || slices.Index(ids, v.BOS) != 0 || slices.Contains(ids[1:], v.BOS) {
		t.Errorf("%v: %v begins with %d", engines, ids, v.BOS)
	}
	if text := r.Cells[0].Prompt; !strings.Contains(text, "[user] the quick") ||
		!strings.HasSuffix(text, "[assistant]") {
		t.Errorf("rendered as %q", text)
	}
	without := slices.DeleteFunc(slices.Clone(cmd.Args[1:]), func(a string) bool { return a == "--chat" })
	raw := resumed(cmd, append(without, "--dry-run")...)
	if stdout, _, _ := output(t, raw); !strings.Contains(stdout, "use --chat to apply it") {
		t.Errorf("no note about the template: %s", stdout)
	}
	rewrite(t, path, chat, gguf.Entry{Key: "tokenizer.chat_template", Value: "{{ raise_exception('no users') }}"})
	refusal(t, resumed(cmd, cmd.Args[1:]...), fault.NotSupported, "the chat template of")
}
