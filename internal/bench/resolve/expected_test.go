package resolve

import (
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
)

// All tokens of a default run are certain, and some after each of the tiny model's own prompts. Other models are not
// computed.
func TestExpectedTokensOfTinyModel(t *testing.T) {
	m, err := (models.Finder{}).Find(t.Context(), models.Tiny, 1024)
	check.Err(t, err)
	p, err := plan.Parse(plans.Default, "default.yaml", kinds.All...)
	check.Err(t, err)
	p.Context = 1024
	for _, prompt := range tinytest.Prompts() {
		p.Prompts = append(p.Prompts, plan.Prompt{Text: prompt.Text})
	}
	known, err := expected(setupOf(m, p))
	check.Err(t, err)
	for i, prompt := range p.Prompts {
		if n := len(known[prompt.Text]); n == 0 || i == 0 && n != p.MaxTokens {
			t.Errorf("%.30q: %d of %d tokens are certain", prompt.Text, n, p.MaxTokens)
		}
	}
	p.Context = 65
	if known, err = expected(setupOf(m, p)); err != nil || len(known[p.Prompts[9].Text]) != 0 {
		t.Errorf("a prompt that does not fit: %v, %v", known[p.Prompts[9].Text], err)
	}
	if known, err = expected(setupOf(models.Model{}, p)); known != nil || err != nil {
		t.Errorf("another model: %v (%v)", known, err)
	}
}

// With less precision than float32 nothing is certain. Ollama's default cache is f16, which leaves the text as it is.
func TestExpectedTokensNeedPrecision(t *testing.T) {
	m, err := (models.Finder{}).Find(t.Context(), models.Tiny, 1024)
	check.Err(t, err)
	section := func(key, value string) map[string]engine.Section {
		return map[string]engine.Section{"llamacpp": {key: value}}
	}
	for name, c := range map[string]struct {
		plan  plan.Plan
		known bool
	}{
		"f16 weights":         {plan.Plan{DType: "f16"}, false},
		"an f16 KV cache":     {plan.Plan{KVDType: "f16"}, false},
		"a q8_0 KV cache":     {plan.Plan{KVDType: "q8_0"}, false},
		"an f32 KV cache":     {plan.Plan{KVDType: "f32"}, true},
		"quantised keys":      {plan.Plan{Sections: section("cache_type_k", "q8_0")}, false},
		"quantised values":    {plan.Plan{Sections: section("cache_type_v", "q4_0")}, false},
		"a quantised cache":   {plan.Plan{Sections: section("kv_type", "q8_0")}, false},
		"Ollama's cache":      {plan.Plan{Sections: section("kv_type", "f16")}, true},
		"quantised weights":   {plan.Plan{Sections: section("requantize", "q4f32_1")}, false},
		"nothing but threads": {plan.Plan{Sections: section("threads", "2")}, true},
	} {
		c.plan.Prompts, c.plan.MaxTokens, c.plan.Context = plan.Texts("The third clock"), 4, 1024
		if known, err := expected(setupOf(m, c.plan)); (known != nil) != c.known || err != nil {
			t.Errorf("%s: %v (%v)", name, known, err)
		}
	}
}

// setupOf has a cell for each prompt of a plan.
func setupOf(m models.Model, p plan.Plan) *Chosen {
	s := &Chosen{Setup: &plan.Setup{Plan: p}, Model: m}
	for i, prompt := range p.Prompts {
		s.Cells = append(s.Cells, record.Cell{PromptID: i + 1, Prompt: prompt.Text, MaxTokens: p.MaxTokens})
	}
	return s
}
