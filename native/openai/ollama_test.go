package openai_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/openai"
	"llmparity/native/openai/openaitest"
)

// TestOllama goes through what Ollama's own endpoints of this interface can do. It cuts a prompt that is too long
// without a word, so that the suite, which wants that refused, is not for it. Keys and values are f16 there: the
// reference's words are the same for a while.
func TestOllama(t *testing.T) {
	cases := enginetest.Tiny(t, 16)
	server := openaitest.Ollama(t, cases[1].Model.Path, "mouse", "{{ .Prompt }}")
	s, p := loaded(t, openai.Config{URL: server.URL}, served)
	info := p.Engine()
	if info.Parts["server"] != "Ollama" || info.Parts["model"] != "mouse:latest" || info.Parts["server_version"] == "" {
		t.Errorf("%+v", info)
	}
	roles := map[string]bool{}
	for _, source := range p.Attached() {
		roles[source.Describe().Role] = true
	}
	if !roles["server"] || !roles["runner"] {
		t.Errorf("after the load %v are sampled, want the server and its runner", roles)
	}
	ask := func(ctx context.Context, c enginetest.Case, n int, on func(record.Token)) (enginetest.Generation, error) {
		g := enginetest.Generation{Caps: engine.Caps{PromptCache: true}, MaxTokens: n}
		var err error
		g.Usage, err = s.Generate(ctx, request(c.Prompt, n), func(k record.Token) {
			g.Tokens = append(g.Tokens, k)
			on(k)
		})
		return g, err
	}
	nothing := func(record.Token) {}

	// Two at once, each with its own words.
	var both sync.WaitGroup
	for _, c := range cases[1:3] {
		both.Go(func() {
			g, err := ask(t.Context(), c, 16, nothing)
			if err != nil || g.Usage.Text != c.Text || g.Usage.Generated != 16 || len(g.Tokens) != 16 ||
				g.Usage.Finish != "length" {
				t.Errorf("%v: %q (%+v), want %q", err, g.Usage.Text, g.Usage, c.Text)
			}
			if g.Usage.PromptTokens != len(c.PromptIDs) {
				t.Errorf("%d tokens of the prompt, want %d", g.Usage.PromptTokens, len(c.PromptIDs))
			}
		})
	}
	both.Wait()

	ctx, cancel := context.WithCancel(t.Context())
	g, err := ask(ctx, cases[1], 400, func(k record.Token) {
		if k.Index == 2 {
			cancel()
		}
	})
	cancel()
	if !errors.Is(err, context.Canceled) || len(g.Tokens) < 3 || len(g.Tokens) > 390 {
		t.Errorf("cancelled at the third piece: %v after %d", err, len(g.Tokens))
	}
	if g, err := ask(t.Context(), cases[1], 16, nothing); err != nil || g.Usage.Text != cases[1].Text {
		t.Errorf("after that: %v, %q", err, g.Usage.Text)
	}

	chat, _ := loaded(t, openai.Config{URL: server.URL, API: openai.Chat}, served)
	if g, err := chat.Generate(t.Context(), request(cases[1].Prompt, 16), nothing); err != nil ||
		g.Text != cases[1].Text || g.Generated != 16 {
		t.Errorf("a chat, where the template is the prompt: %v, %q, want %q", err, g.Text, cases[1].Text)
	}
	err = openai.New(openai.Config{URL: server.URL, Model: "moose"}).Check(t.Context(), served)
	oneLine(t, err, record.SetUp, fault.ServerUnreachable, `no model "moose"; did you mean "mouse:latest"`)
	if slices.ContainsFunc(p.Warnings(), func(w record.Warning) bool { return strings.Contains(w.Code, "counts") }) {
		t.Errorf("%v", p.Warnings())
	}
}
