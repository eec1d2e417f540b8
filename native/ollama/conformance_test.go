package ollama

import (
	"os"
	"testing"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
)

func newEngine(t testing.TB, change ...func(*Config)) *Ollama {
	t.Helper()
	c := Config{Cache: cache.Dir(os.Getenv), Threads: 1}
	for _, f := range change {
		f(&c)
	}
	if c.URL != "" && c.Cache == cache.Dir(os.Getenv) {
		c.Cache = t.TempDir() // for the notes of what lies in that server
	}
	return New(c)
}

// The reference's keys and values are f32, Ollama's f16: where two tokens are close, the texts part. They don't within
// these.
func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 16)[1]
	c.New = func(t *testing.T) engine.Engine { return newEngine(t) }
	enginetest.Run(t, c)
}

// With slots, what one slot is held to holds for all of them, and they go on together.
func TestSlotsConformance(t *testing.T) {
	c := enginetest.Tiny(t, 16)[1]
	c.Slots = 3
	c.New = func(t *testing.T) engine.Engine { return newEngine(t, func(o *Config) { o.Slots = c.Slots }) }
	enginetest.Run(t, c)
}

// The same of a server that somebody else started: a real one, for every launch.
func TestConformanceOfRunningServer(t *testing.T) {
	c := enginetest.Tiny(t, 16)[1]
	c.New = func(t *testing.T) engine.Engine {
		theirs, _ := opened(t, newEngine(t))
		return newEngine(t, func(c *Config) { c.URL = theirs.client.Base })
	}
	enginetest.Run(t, c)
}
