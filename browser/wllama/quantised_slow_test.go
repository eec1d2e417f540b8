//go:build slow

package wllama

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
	"llmparity/native/llamacpp"
)

// alike are the types in which all tokens were seen to be equal. Kernels of the others sum in another order, and small
// random models turn a rounding step into another token: most texts are equal, and those that part are logged.
var alike = []string{"Q4_0", "Q4_K", "Q8_0"}

// Quantised weights give llama.cpp's tokens.
func TestQuantisedTypes(t *testing.T) {
	const tokens = 32
	native := llamacpp.New(llamacpp.Config{Cache: cache.Dir(os.Getenv)})
	for _, feature := range tinytest.Types() {
		t.Run(feature.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.gguf")
			check.Err(t, tiny.WriteRandomFile(t.Context(), path, feature.Spec))
			m := models.Model{Path: path, Model: record.Model{Context: 1024}}
			web, _ := open(t, with(WASM, 1))
			server, _ := enginetest.Open(t, native)
			enginetest.Load(t, web, m)
			enginetest.Load(t, server, m)
			equal, prompts := 0, append(feature.Prompts(), tinytest.Prompts()[:5]...)
			for _, p := range prompts {
				r := engine.Request{Prompt: p.Text, MaxTokens: tokens, IgnoreEOS: true}
				here, err := enginetest.Generate(t.Context(), web, r)
				check.Err(t, err)
				there, err := enginetest.Generate(t.Context(), server, r)
				check.Err(t, err)
				ids, want := here.IDs(), there.IDs()
				at := 0
				for at < tokens && ids[at] == want[at] {
					at++
				}
				if at == tokens {
					equal++
					continue
				}
				var margin float64
				forced := engine.Forced{Prompt: here.Usage.PromptIDs, IDs: want[:at+1], Top: 2}
				check.Err(t, web.Score(t.Context(), forced,
					func(s record.Score) { margin = s.Top[0].LogProb - s.LogProb }))
				t.Logf("%s: parts at token %d, where the two are %.3f apart", p.Name, at, margin)
			}
			least := (len(prompts) + 1) / 2
			if slices.Contains(alike, feature.Name) {
				least = len(prompts)
			}
			t.Logf("%d of %d equal", equal, len(prompts))
			if equal < least {
				t.Errorf("%d of %d texts are equal, want %d", equal, len(prompts), least)
			}
			check.Err(t, web.Close())
			check.Err(t, server.Close())
		})
	}
}
