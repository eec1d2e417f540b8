//go:build slow

package main

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"llmparity/browser/webllm"
	"llmparity/internal/engine"
	"llmparity/internal/model"
	"llmparity/internal/record"
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/tinytest"
)

// WebLLM generates the reference's tokens with every feature of the architecture and every kind of model library.
func TestWebLLMHasEveryFeature(t *testing.T) {
	const n = 32
	for _, kernels := range []string{webllm.SoftwareKernels, webllm.GPUKernels} {
		for _, feature := range tinytest.Features() {
			t.Run(kernels+", "+feature.Name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				path := filepath.Join(t.TempDir(), "model.gguf")
				check(t, tiny.WriteRandomFile(ctx, path, feature.Spec))
				m, err := model.Open(path, 512)
				check(t, err)
				session := load(t, ctx, webLLM(webllm.Config{Kernels: kernels}), m)
				tokenizer, expect := oracle(t, path)
				for _, p := range feature.Prompts() {
					prompt := tokenizer.Prompt(p.Text)
					want, _, err := expect.Greedy(prompt, n)
					check(t, err)
					var ids []int
					usage, err := session.Generate(ctx, engine.Request{Prompt: p.Text, MaxTokens: n, IgnoreEOS: true},
						func(k record.Token) { ids = append(ids, k.ID) })
					if err != nil || !slices.Equal(usage.PromptIDs, prompt) || !slices.Equal(ids, want) {
						t.Errorf("%s: %v: prompt %v and then %v, want %v and then %v", p.Name, err, usage.PromptIDs,
							ids, prompt, want)
					}
				}
			})
		}
	}
}
