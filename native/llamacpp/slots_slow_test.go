//go:build slow

package llamacpp

import (
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/prompts"
	"llmparity/internal/record"
	"llmparity/internal/tokenizer"
)

func TestPromptsHaveTheRequestedLength(t *testing.T) {
	m := smolLM2(t, 4096)
	tokens, err := tokenizer.Open(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := prompts.NewMaker(tokens)
	if err != nil {
		t.Fatal(err)
	}
	_, s, _ := loadedWith(t, Config{PromptCache: true}, m)
	for seed, n := range []int{1, 2, 17, 256, 1000, 3000} {
		prompt, err := texts.OfLength(n, uint64(seed))
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Generate(t.Context(), engine.Request{Prompt: prompt, MaxTokens: 1, IgnoreEOS: true},
			func(record.Token) {})
		if err != nil || len(u.PromptIDs) != n || u.CachedTokens != 0 {
			t.Errorf("requested %d tokens; the server counts %d, %d of them cached: %v", n, len(u.PromptIDs),
				u.CachedTokens, err)
		}
	}
}
