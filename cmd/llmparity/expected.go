package main

import (
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/plan"
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/reference"
	"llmparity/native/llamacpp"
	"llmparity/native/ollama"
	"llmparity/native/openai"
)

// sureMargin is by how much the first logit must lead the second for a token to be expected of every engine: far more
// than what rounding moves in single precision. In half precision, and where sums are in another order with it, what is
// said depends on all before.
const sureMargin = 0.5

// mostChecked bounds prompts and texts whose tokens are worked out: ours takes its time, which grows with the square of
// a text's length.
const mostChecked = 256

// expected gives what the tiny model says after each prompt of a setup, as far as no rounding can change it, by a plain
// implementation of our own; nil for other models, for which that would take too long, and where weights and
// activations are to be computed in half precision.
func expected(m engine.Model, p plan.Plan, shapes []plan.Shape) (map[string][]int, error) {
	if m.SHA256 != tiny.SHA256 || p.DType == "f16" {
		return nil, nil
	}
	tokenizer, model, err := reference.Open(m.Path)
	if err != nil {
		return nil, err
	}
	out := map[string][]int{}
	longest := map[string]int{}
	for _, s := range shapes {
		longest[s.Prompt] = max(longest[s.Prompt], s.MaxTokens)
	}
	for prompt, n := range longest {
		ids := tokenizer.Encode(prompt)
		if len(ids) == 0 || len(ids) > mostChecked || len(ids)+n > p.Context {
			continue // the engines say what is wrong with it
		}
		greedy, margins, err := model.Greedy(ids, min(n, mostChecked))
		if err != nil {
			return nil, err
		}
		for i, margin := range margins {
			if margin < sureMargin {
				greedy = greedy[:i]
				break
			}
		}
		out[prompt] = greedy
	}
	return out, nil
}

// unsure are the engines of a plan that do not compute as the reference does: nothing is expected of them. Ollama has
// no cache of f32, and of a server it is not known what it has.
func unsure(p plan.Plan) []string {
	var out []string
	for _, name := range p.Engines {
		switch {
		case (name == llamacpp.Name || name == llamacpp.OneShotName) && p.LlamaCpp.Coarse(), name == ollama.Name,
			strings.HasPrefix(name, openai.Name):
			out = append(out, name)
		}
	}
	return out
}
