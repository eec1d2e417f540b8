package main

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"llmparity/browser/webllm"
	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
)

// featureContext is the context of the sessions.
const featureContext = 512

// answered is how many tokens of an answer are compared.
const answered = 32

// featureNamed returns one of tinytest.Features, with its model.
func featureNamed(t *testing.T, ctx context.Context, name string) (tinytest.Feature, models.Model) {
	t.Helper()
	all := append(tinytest.Features(), tinytest.Types()...)
	i := slices.IndexFunc(all, func(f tinytest.Feature) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("no model is called %s", name)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	check(t, tiny.WriteRandomFile(ctx, path, all[i].Spec))
	m, err := models.Open(t.Context(), path, featureContext)
	check(t, err)
	return all[i], m
}

// answersLikeReference compares a session's prompts and answers with the reference's.
func answersLikeReference(t *testing.T, ctx context.Context, s engine.Session, path string, prompts []tinytest.Prompt) {
	t.Helper()
	tokenizer, expect := oracle(t, path)
	expect.Context(featureContext)
	for _, p := range prompts {
		prompt := tokenizer.Prompt(p.Text)
		want, _, err := expect.Greedy(prompt, answered)
		check(t, err)
		if in, ids := spoken(t, ctx, s, p.Text, answered); !slices.Equal(in, prompt) || !slices.Equal(ids, want) {
			t.Errorf("%s: prompt %v and then %v, want %v and then %v", p.Name, in, ids, prompt, want)
		}
	}
}

// spoken are a prompt's tokens and the n tokens that an engine answers.
func spoken(t *testing.T, ctx context.Context, s engine.Session, prompt string, n int) (in, out []int) {
	t.Helper()
	usage, err := s.Generate(ctx, engine.Request{Prompt: prompt, MaxTokens: n, IgnoreEOS: true},
		func(k record.Token) { out = append(out, k.ID) })
	check(t, err)
	return usage.PromptIDs, out
}

// A gemma3 has most of what architectures differ in.
func TestWebLLMRunsGemma3(t *testing.T) {
	browserTest(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	feature, m := featureNamed(t, ctx, "gemma3, two bases and linear scaling")
	session := load(t, ctx, webLLM(webllm.Config{Kernels: webllm.SoftwareKernels}), m)
	answersLikeReference(t, ctx, session, m.Path, feature.Prompts())
}
