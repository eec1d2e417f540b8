package resolve

import (
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/engine"
	"llmparity/internal/model"
	"llmparity/internal/plan"
	"llmparity/internal/tiny/tinytest"
)

// All tokens of a default run are certain for the tiny model's own prompts. Other models are not computed.
func TestExpectedTokensOfTinyModel(t *testing.T) {
	m, err := (model.Finder{}).Find(t.Context(), model.Tiny, 1024)
	check.Err(t, err)
	p := plan.Plan{MaxTokens: 64, Context: 1024}
	for _, prompt := range tinytest.Prompts() {
		p.Prompts = append(p.Prompts, plan.Prompt{Text: prompt.Text})
	}
	known, err := expected(setupOf(m, p))
	check.Err(t, err)
	for _, prompt := range p.Prompts {
		if n := len(known[prompt.Text]); n != p.MaxTokens {
			t.Errorf("%.30q: %d of %d tokens are certain", prompt.Text, n, p.MaxTokens)
		}
	}
	p.Context = 65
	if known, err = expected(setupOf(m, p)); err != nil || len(known[p.Prompts[8].Text]) != 0 {
		t.Errorf("a prompt that does not fit: %v, %v", known[p.Prompts[8].Text], err)
	}
	p.DType = "f16"
	if known, err = expected(setupOf(m, p)); known != nil || err != nil {
		t.Errorf("half precision: %v (%v)", known, err)
	}
	p.DType = ""
	if known, err = expected(setupOf(engine.Model{}, p)); known != nil || err != nil {
		t.Errorf("another model: %v (%v)", known, err)
	}
}

// setupOf has a shape for each prompt of a plan.
func setupOf(m engine.Model, p plan.Plan) *Setup {
	s := &Setup{Setup: plan.Setup{Plan: p}, Model: m}
	for i, prompt := range p.Prompts {
		s.Shapes = append(s.Shapes, plan.Shape{PromptID: i + 1, Prompt: prompt.Text, MaxTokens: p.MaxTokens})
	}
	return s
}
