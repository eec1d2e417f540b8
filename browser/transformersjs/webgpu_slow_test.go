//go:build slow

package transformersjs

import (
	"slices"
	"testing"

	"llmparity/browser"
	"llmparity/browser/find"
	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
)

// ONNX Runtime's attention of prompts above 32 tokens comes out wrong with lavapipe's subgroups of 8, as with
// SwiftShader's of 4. Without them it is right.
func TestLavapipe(t *testing.T) {
	_, err := find.Lavapipe()
	check.Err(t, err)
	c := Config{Settings: browser.Defaults(), Backend: WebGPU}
	c.Adapter = string(browser.Lavapipe)
	cases := enginetest.Tiny(t, 16)
	s, probe := loaded(t, New(c, engine.Settings{Threads: 1, Cache: t.TempDir()}), cases[0].Model)
	for _, one := range cases[2:5] {
		if got, _ := ids(t, s, one.Prompt, 16); !slices.Equal(got, one.Expected) {
			t.Errorf("prompt of %d tokens: ids %v,\nwant %v", len(one.PromptIDs), got, one.Expected)
		}
	}
	if said := probe.Engine().Policy["subgroups"]; said != "off" {
		t.Errorf("subgroups are %s", said)
	}
}
