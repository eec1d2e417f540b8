package transformersjs

import (
	"testing"

	"llmparity/browser"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/child/childtest"
)

func TestMain(m *testing.M) { childtest.Browsers(m, func() error { return nil }) }

// made makes an engine with a cache of the test's own.
func made(t *testing.T, c Config, s engine.Settings) *Engine {
	t.Helper()
	c.Settings.Adapter = "swiftshader"
	s.Cache = t.TempDir()
	return New(c, s)
}

func TestConformance(t *testing.T) {
	c := enginetest.Tiny(t, 24)[1]
	c.New = func(t *testing.T) engine.Engine {
		return made(t, Config{Settings: browser.Defaults()}, engine.Settings{Threads: 1})
	}
	enginetest.Run(t, c)
}
