package main

import (
	"fmt"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/plan"
	"llmparity/internal/tiny/tinytest"
)

// Of the tiny model's own prompts all of a default run's tokens are certain; other models are not reckoned through.
func TestTheTinyModelsWordsAreExpected(t *testing.T) {
	m, err := tinyModel(1024)
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Plan{MaxTokens: 64, Context: 1024}
	for _, prompt := range tinytest.Prompts() {
		p.Prompts = append(p.Prompts, prompt.Text)
	}
	known, err := expected(m, p, shapesOf(p))
	if err != nil {
		t.Fatal(err)
	}
	for _, prompt := range p.Prompts {
		if n := len(known[prompt]); n != p.MaxTokens {
			t.Errorf("%.30q: %d of %d tokens are certain", prompt, n, p.MaxTokens)
		}
	}
	p.Context = 65
	if known, err = expected(m, p, shapesOf(p)); err != nil || len(known[p.Prompts[8]]) != 0 {
		t.Errorf("a prompt that does not fit: %v, %v", known[p.Prompts[8]], err)
	}
	if known, err = expected(engine.Model{}, p, shapesOf(p)); known != nil || err != nil {
		t.Errorf("of another model %v is expected (%v)", known, err)
	}
}

// Options that change what is computed must not make a run fail for what it says: it says what it does.
func TestNothingIsExpectedOfOtherNumbers(t *testing.T) {
	for _, options := range [][]string{
		{"--llamacpp-flash-attention", "on"},
		{"--llamacpp-cache-type-k", "f16", "--llamacpp-cache-type-v", "f16"},
		{"--dtype", "f16"},
	} {
		args := []string{"run", "-q", "--engines", "llamacpp", "--repetitions", "1", "--max-tokens", "64"}
		for _, prompt := range tinytest.Prompts()[:2] {
			args = append(args, "--prompt", prompt.Text)
		}
		if _, stderr, code := output(t, program(t, append(args, options...)...)); code != 0 {
			t.Errorf("%v: exit code %d\n%s", options, code, stderr)
		}
	}
	engines := []string{"webllm", "llamacpp", "llamacpp-oneshot", "ollama"}
	for _, c := range []struct {
		llama plan.LlamaCpp
		want  string
	}{
		{plan.LlamaCpp{CacheTypeK: "f32", FlashAttention: "off"}, "[ollama]"},
		{plan.LlamaCpp{FlashAttention: "auto"}, "[llamacpp llamacpp-oneshot ollama]"},
		{plan.LlamaCpp{CacheTypeV: "f16"}, "[llamacpp llamacpp-oneshot ollama]"},
		{plan.LlamaCpp{GPULayers: 1}, "[llamacpp llamacpp-oneshot ollama]"},
	} {
		if got := fmt.Sprint(unsure(plan.Plan{Engines: engines, LlamaCpp: &c.llama})); got != c.want {
			t.Errorf("%+v: of %s nothing is expected, want %s", c.llama, got, c.want)
		}
	}
}

// shapesOf are the texts of a plan, each asked about once.
func shapesOf(p plan.Plan) []plan.Shape {
	var out []plan.Shape
	for i, prompt := range p.Prompts {
		out = append(out, plan.Shape{PromptID: i + 1, Prompt: prompt, MaxTokens: p.MaxTokens})
	}
	return out
}
