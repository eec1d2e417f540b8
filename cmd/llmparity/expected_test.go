package main

import (
	"fmt"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/plan"
)

// Settings that change the computation must not fail a run because its tokens differ from the reference.
func TestOtherDtypesMayChangeTokens(t *testing.T) {
	engines := []string{"webllm", "llamacpp", "llamacpp-oneshot", "ollama"}
	for _, c := range []struct {
		llama engine.Section
		want  string
	}{
		{engine.Section{"cache_type_k": "f32", "flash_attention": "off"}, "[ollama]"},
		{engine.Section{"flash_attention": "auto"}, "[llamacpp llamacpp-oneshot ollama]"},
		{engine.Section{"cache_type_v": "f16"}, "[llamacpp llamacpp-oneshot ollama]"},
		{engine.Section{"gpu_layers": 1}, "[llamacpp llamacpp-oneshot ollama]"},
	} {
		f, got := &runFlags{}, []string{}
		made, err := f.enginesOf(true, func(string, string) {})(t.Context(), plan.Plan{Engines: engines,
			Sections: map[string]engine.Section{"llamacpp": c.llama}})
		for _, e := range made {
			if e.Caps().Rounds {
				got = append(got, e.Name())
			}
		}
		if fmt.Sprint(got) != c.want || err != nil {
			t.Errorf("%+v: of %s nothing is expected, want %s (%v)", c.llama, got, c.want, err)
		}
	}
}
