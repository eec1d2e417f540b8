package ollama

import (
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/record"
)

// What was said before is computed again, or comes from the cache where that is left alone; the log tells how much of
// it.
func TestATurnTakesWhatWasSaidFromTheCache(t *testing.T) {
	m := enginetest.TinyModel(t)
	for _, c := range []struct {
		keeps bool
		slots int
	}{{false, 1}, {true, 1}, {true, 2}} {
		s, _ := opened(t, newEngine(t, func(o *Config) { o.PromptCache, o.Slots = c.keeps, c.slots }))
		if err := s.Load(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		said, asked := "", 0
		for turn := range 3 {
			prompt := said + "Tell me more of the small model. "
			u, err := s.Generate(t.Context(), engine.Request{Prompt: prompt, MaxTokens: 12}, func(record.Token) {})
			if err != nil {
				t.Fatal(err)
			}
			if c.keeps && u.CachedTokens < asked-1 || !c.keeps && (u.CachedTokens < 0 || u.CachedTokens > 1) {
				t.Errorf("%+v: turn %d: %d of %d tokens came from the cache; the turn before had %d", c, turn+1,
					u.CachedTokens, u.PromptTokens, asked)
			}
			said, asked = prompt+u.Text, u.PromptTokens
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
