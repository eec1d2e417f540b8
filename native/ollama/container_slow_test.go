//go:build slow && linux

package ollama

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/container/containertest"
	"llmparity/internal/kit/check"
	"llmparity/native/place"
)

// In a container, Ollama generates what it generates outside, its server and its runner are sampled, and nothing of
// them stays there: with a model that the container has, and with one that goes there by HTTP.
func TestOllamaInContainer(t *testing.T) {
	containertest.Setup(t)
	m := enginetest.TinyModel(t)
	shown := containertest.Libraries("-v", cache.Dir(os.Getenv)+":/builds:ro")
	containertest.Run(t, "bare", "while :; do sleep 1; done", shown...)
	containertest.Run(t, "box", "while :; do sleep 1; done", append(shown, "-v", filepath.Dir(m.Path)+":/models:ro")...)
	generate := func(in *place.Place) string {
		s, p := enginetest.Open(t, New(Config{Cache: cache.Dir(os.Getenv), in: in}))
		enginetest.Load(t, s, m)
		g, err := enginetest.Generate(t.Context(), s, engine.Request{Prompt: "The quick brown", MaxTokens: 16})
		check.Err(t, err)
		if len(p.PIDs(roleServer)) != 1 || len(p.PIDs(roleRunner)) != 1 {
			t.Errorf("%v: servers %v, runners %v are sampled", in, p.PIDs(roleServer), p.PIDs(roleRunner))
		}
		check.Err(t, s.Unload(t.Context()))
		check.Err(t, s.Close())
		return g.Usage.Text
	}
	want := generate(nil)
	for _, name := range []string{"bare", "box"} {
		before := containertest.Podman(t, "exec", name, "busybox", "ls", "/tmp")
		if got := generate(place.In(name)); got != want || want == "" {
			t.Errorf("%s: %q, outside %q", name, got, want)
		}
		if said := containertest.Podman(t, "top", name, "comm"); strings.Contains(said, Name) {
			t.Errorf("left in %s:\n%s", name, said)
		}
		if after := containertest.Podman(t, "exec", name, "busybox", "ls", "/tmp"); before != after {
			t.Errorf("left in %s: %q, before %q", name, after, before)
		}
	}
}
