package llamacpp

import (
	"os"
	"testing"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
)

func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine { return newEngine(t) }
	enginetest.Run(t, c)
}

// With slots, what one slot is held to holds for all of them, and they go on together.
func TestSlotsConformance(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	c.Slots = 4
	c.New = func(t *testing.T) engine.Engine { return New(Config{Cache: cache.Dir(os.Getenv), Slots: c.Slots}) }
	enginetest.Run(t, c)
}

func TestOneShotConformance(t *testing.T) {
	c := enginetest.Tiny(t, 32)[1]
	c.New = func(t *testing.T) engine.Engine { return newOneShot() }
	enginetest.Run(t, c)
}

// TestReference holds every prompt against an implementation that shares nothing with llama.cpp.
func TestReference(t *testing.T) {
	cases := enginetest.Tiny(t, 48)
	s, _ := loadedSession(t, cases[0].Model)
	for _, c := range cases {
		g, err := generate(t, s, engine.Request{Prompt: c.Prompt, MaxTokens: 48, IgnoreEOS: true})
		if err != nil {
			t.Fatalf("%q: %v", c.Prompt, err)
		}
		for _, f := range append(g.Faults(0), c.Faults(g)...) {
			t.Errorf("%q: %s", c.Prompt, f)
		}
	}
}
