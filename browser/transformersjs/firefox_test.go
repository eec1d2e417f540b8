package transformersjs

import (
	"slices"
	"testing"

	"llmparity/browser"
	"llmparity/browser/find"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
)

// In Firefox, too, the ids are those of the reference.
func TestFirefox(t *testing.T) {
	if _, err := find.Chrome("firefox"); err != nil {
		t.Skip("no Firefox here: scripts/setup firefox")
	}
	c := enginetest.Tiny(t, 32)[1]
	config := Config{Settings: browser.Defaults()}
	config.Chrome = "firefox"
	e := New(config, engine.Settings{Threads: 1, Cache: t.TempDir()})
	s, _ := loaded(t, e, c.Model)
	if got, _ := ids(t, s, c.Prompt, 32); !slices.Equal(got, c.Expected) {
		t.Errorf("ids %v,\nwant %v", got, c.Expected)
	}
}
