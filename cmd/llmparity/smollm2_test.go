//go:build slow

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/model"
	"llmparity/internal/record"
	"llmparity/internal/tiny/reference"
)

// rounding is the margin below which float32 engines may choose different tokens.
const rounding = 0.01

// All engines generate the same 32 tokens with SmolLM2 in float32, or differ at a near tie.
func TestEnginesAgreeOnSmolLM2(t *testing.T) {
	const n = 32
	m := smolLM2(t)
	prompts := []string{
		"The capital of France is",
		"Once upon a time, in a village by the sea,",
		"def fibonacci(n):\n",
		"<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
		"1, 1, 2, 3, 5, 8, 13,",
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	said := map[string][]answer{} // by engine
	all := bothEngines()
	for _, e := range all {
		session := load(t, ctx, e, m)
		for _, p := range prompts {
			said[e.Name()] = append(said[e.Name()], ask(t, ctx, session, p, n))
		}
		if err := session.Unload(ctx); err != nil {
			t.Error(err)
		}
		if err := session.Close(); err != nil { // two engines with the model at once are too much for a small machine
			t.Error(err)
		}
	}
	first := said[all[0].Name()]
	for _, e := range all[1:] {
		for i, other := range said[e.Name()] {
			first[i].agree(t, m, other)
		}
	}
}

type answer struct {
	prompt         string
	promptIDs, ids []int
}

func ask(t *testing.T, ctx context.Context, s engine.Session, prompt string, n int) answer {
	t.Helper()
	a := answer{prompt: prompt}
	began := time.Now()
	usage, err := s.Generate(ctx, engine.Request{Prompt: prompt, MaxTokens: n, IgnoreEOS: true},
		func(k record.Token) { a.ids = append(a.ids, k.ID) })
	if err != nil {
		t.Fatalf("%.40q: %v", prompt, err)
	}
	if len(a.ids) != n {
		t.Fatalf("%.40q: %d tokens, %d were asked for", prompt, len(a.ids), n)
	}
	t.Logf("%.40q: %d + %d tokens in %.1f s: %.60q", prompt, len(usage.PromptIDs), n, time.Since(began).Seconds(),
		usage.Text)
	a.promptIDs = usage.PromptIDs
	return a
}

// agree compares the output of two engines. At a difference, the reference's best two tokens must be close.
func (a answer) agree(t *testing.T, m engine.Model, b answer) {
	t.Helper()
	at := firstDifference(a.promptIDs, b.promptIDs)
	if at >= 0 {
		t.Errorf("%.40q: the prompts' ids part at %d: %v and %v", a.prompt, at, a.promptIDs, b.promptIDs)
		return
	}
	if at = firstDifference(a.ids, b.ids); at < 0 {
		return
	}
	_, oracle, err := reference.Open(m.Path)
	check(t, err)
	_, margins, err := oracle.Greedy(append(a.promptIDs, a.ids[:at]...), 1)
	check(t, err)
	t.Logf("%.40q: they part at %d, margin %.4f", a.prompt, at, margins[0])
	if margins[0] >= rounding {
		t.Errorf("%.40q: %v and %v part at %d, where the margin is %.4f", a.prompt, a.ids, b.ids, at, margins[0])
	}
}

// firstDifference is where two lists differ, or -1.
func firstDifference(a, b []int) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// smolLM2 returns SmolLM2-135M-Instruct with float32 weights.
func smolLM2(t testing.TB) engine.Model {
	t.Helper()
	found, err := model.Path(model.SmolLM2)
	check(t, err)
	dir := t.TempDir()
	if _, errs, code := called("model", "convert", found, "--to", "gguf", "-o", dir); code != 0 {
		t.Fatal(errs)
	}
	name := strings.TrimSuffix(filepath.Base(found), ".gguf") + "-f32.gguf"
	m, err := model.Open(filepath.Join(dir, name), 512)
	check(t, err)
	return m
}
