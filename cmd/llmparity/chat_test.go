package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
)

// chatTemplate has what common templates have: roles, filters, conditions, and the beginning of the answer.
const chatTemplate = "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}[user] {{ m['content'] | trim }}" +
	"{{ eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"

// With --chat the model's own template is rendered once, and all engines that take ids compute the same ones, with one
// token at the beginning. An engine that ignores them finds the same in the rendered text.
func TestChatSendsTheSameIDs(t *testing.T) {
	browserTest(t)
	path := tinyOf(t).Path
	cmd := oneLaunch(t, "llamacpp", "--engines", "llamacpp,webllm", "--engine", "exec:mine="+exampleEngine(t),
		"--model", "chat.gguf", "--chat", "--prompt", " the quick ", "--max-tokens", "4")
	chat := filepath.Join(cmd.Dir, "chat.gguf")
	rewrite(t, path, chat, gguf.Entry{Key: "tokenizer.chat_template", Value: chatTemplate})
	well(t, cmd)
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
	for name, noted := range map[string]bool{"Mouse 1B Instruct": true, "Mouse 1B Base": false, "random-4x64": false} {
		rewrite(t, path, chat, gguf.Entry{Key: "general.name", Value: name})
		out, _ := well(t, resumed(cmd, append(without, "--dry-run")...))
		if strings.Contains(out, "use --chat to apply it") != noted {
			t.Errorf("%s: a note about the template: %v: %s", name, !noted, out)
		}
	}
	rewrite(t, path, chat, gguf.Entry{Key: "tokenizer.chat_template", Value: "{{ raise_exception('no users') }}"})
	refuses(t, resumed(cmd, cmd.Args[1:]...), fault.NotSupported, "the chat template of")
}

// All prompts of a run are rendered by one server, however many cells there are.
func TestChatStartsOneServer(t *testing.T) {
	lightTest(t)
	cmd := program(t, "run", "plan.yaml", "--llama-server", "./server")
	put(t, cmd.Dir, "server", "#!/bin/sh\ncase \"$*\" in *--port*) echo start >>"+cmd.Dir+"/starts;; esac\n"+
		"exec "+llamaServer(t)+" \"$@\"\n")
	rewrite(t, tinyOf(t).Path, filepath.Join(cmd.Dir, "chat.gguf"),
		gguf.Entry{Key: "tokenizer.chat_template", Value: chatTemplate})
	put(t, cmd.Dir, "plan.yaml", "engines: [llamacpp]\nmodel: chat.gguf\nchat: true\nprompts: [the, a]\n"+
		"contexts: [64, 128]\nmax_tokens: 2\nrepetitions: 1\nwarmup: {launches: 0, tokens: 1}\ncheck: false\n")
	well(t, cmd)
	if n := strings.Count(readFile(t, filepath.Join(cmd.Dir, "starts")), "start"); n != 5 {
		t.Errorf("%d servers started, want 5: one for each cell, and one for the template", n)
	}
}
