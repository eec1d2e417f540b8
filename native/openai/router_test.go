package openai_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
	"llmparity/native/openai"
	"llmparity/native/openai/openaitest"
)

// A llama-server that has a folder of models starts a server for the one that is asked for, and wants to be told which
// at every question.
func TestARouter(t *testing.T) {
	c := enginetest.Tiny(t, 16)[1]
	dir := t.TempDir()
	model, err := os.ReadFile(c.Model.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mouse", "moose"} {
		if err := os.WriteFile(filepath.Join(dir, name+".gguf"), model, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := openaitest.Router(t, dir, "-c", "512", "--metrics")
	e := openai.New(openai.Config{URL: server.URL})
	if err := e.Check(t.Context(), served); err != nil {
		t.Fatal(err)
	}
	s, p := loaded(t, openai.Config{URL: server.URL}, served)
	g, err := generated(t.Context(), s, 16)
	if err != nil || len(g.Usage.PromptIDs) == 0 || g.Usage.Generated != 16 || len(g.Tokens) != 16 {
		t.Fatalf("%v: %+v", err, g.Usage)
	}
	if got := metricsOf(t, p); got["generated_tokens_count"] < 16 {
		t.Errorf("of itself the server says %v", got)
	}
	if _, err := generated(t.Context(), s, 600); err == nil || !strings.Contains(err.Error(), "in a context of 512") {
		t.Errorf("more than it holds: %v", err)
	}
}

// A server's own defaults of sampling don't part its words from other engines'.
func TestTheServersDefaultsAreOutOfAction(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	server := openaitest.Llama(t, c.Model.Path, "-np", "1", "-c", "512", "--repeat-penalty", "1.8",
		"--presence-penalty", "1.5", "--dry-multiplier", "0.8",
		"--temp", "0.9", "--mirostat", "2")
	s, _ := loaded(t, openai.Config{URL: server.URL}, c.Model)
	u, err := s.Generate(t.Context(), engine.Request{Prompt: c.Prompt, MaxTokens: 32, IgnoreEOS: true},
		func(record.Token) {})
	if err != nil || u.Text != c.Text {
		t.Errorf("%v: %q, want %q", err, u.Text, c.Text)
	}
}
