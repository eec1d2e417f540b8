package main

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"llmparity/browser/webllm"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
)

// Every engine generates the reference's tokens for every prompt of the tiny model. All comparisons rely on it.
func TestEnginesGenerateReferenceTokens(t *testing.T) {
	browserTest(t)
	t.Parallel()
	const n = 64
	cases := enginetest.Tiny(t, n)
	if len(cases) < 8 {
		t.Fatalf("%d prompts, at least 8 are wanted", len(cases))
	}
	_, known := oracle(t, cases[0].Model.Path)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, e := range bothEngines() {
		t.Run(e.Name(), func(t *testing.T) {
			session := load(t, ctx, e, cases[0].Model)
			for _, c := range cases {
				if in, ids := spoken(t, ctx, session, c.Prompt, n); !slices.Equal(in, c.PromptIDs) ||
					!slices.Equal(ids, c.Expected) {
					t.Errorf("%.40q: %v and then %v, the reference has %v and then %v", c.Prompt, in, ids, c.PromptIDs, c.Expected)
				}
			}
			scoresAsTheReference(t, ctx, session, known, cases[0], cases[1])
		})
	}
}

// All engines continue after an end-of-text token and add a beginning-of-text token if the model asks for it. The tiny
// model never generates its own end, so another token becomes one.
func TestEnginesTreatSpecialTokensAlike(t *testing.T) {
	browserTest(t)
	t.Parallel()
	const n = 24
	c := enginetest.Tiny(t, n)[1]
	begins := withMetadata(t, c.Model, gguf.Entry{Key: "tokenizer.ggml.add_bos_token", Value: true})
	f, err := gguf.Open(begins.Path)
	check(t, err)
	defer f.Close()
	bos, err := f.Uint("tokenizer.ggml.bos_token_id")
	check(t, err)
	prompt := append([]int{int(bos)}, c.PromptIDs...)
	_, oracle, err := reference.Read(f)
	check(t, err)
	expected, _, err := oracle.Greedy(prompt, n)
	check(t, err)
	end := expected[n/2]
	m := withMetadata(t, begins, gguf.Entry{Key: "tokenizer.ggml.eos_token_id", Value: uint32(end)})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, e := range bothEngines() {
		t.Run(e.Name(), func(t *testing.T) {
			session := load(t, ctx, e, m)
			for _, beyond := range []bool{true, false} {
				var ids []int
				usage, err := session.Generate(ctx, engine.Request{Prompt: c.Prompt, MaxTokens: n, IgnoreEOS: beyond},
					func(k record.Token) { ids = append(ids, k.ID) })
				want := expected
				if !beyond {
					want = want[:slices.Index(want, end)+1]
				}
				if err != nil || !slices.Equal(usage.PromptIDs, prompt) || !slices.Equal(ids, want) {
					t.Errorf("going on %v: %v: prompt %v and then %v, want %v and then %v", beyond, err,
						usage.PromptIDs, ids, prompt, want)
				}
			}
		})
	}
}

// withMetadata copies a model with another value of a key.
func withMetadata(t *testing.T, from models.Model, entry gguf.Entry) models.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "changed.gguf")
	rewrite(t, from.Path, path, entry)
	m, err := models.Open(t.Context(), path, from.Context)
	check(t, err)
	return m
}

// bothEngines run a GGUF in f32 and report token ids.
func bothEngines() []engine.Engine {
	c := new(engineFlags).chosen()
	return []engine.Engine{c.Engine(webllm.Name), c.Engine(llamacpp.Name)}
}

func load(t testing.TB, ctx context.Context, e engine.Engine, m models.Model) engine.Session {
	t.Helper()
	check(t, e.Check(ctx, m))
	if p, ok := e.(engine.Preparer); ok {
		check(t, p.Prepare(ctx, m, func(s string) { t.Log(s) }))
	}
	session, err := e.Open(ctx, &enginetest.Probe{})
	check(t, err)
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	check(t, session.Load(ctx, m))
	return session
}

// oracle returns a model's tokenizer and reference implementation.
func oracle(t *testing.T, path string) (*tokenizer.Tokenizer, *reference.Model) {
	t.Helper()
	tokens, m, err := reference.Open(path)
	check(t, err)
	return tokens, m
}
