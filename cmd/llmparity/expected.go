package main

import (
	"llmparity/internal/engine"
	"llmparity/internal/plan"
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/reference"
)

// sureMargin is by how much the first logit must lead the second for a token to be expected of every engine: far more than what
// rounding moves, in half precision too.
const sureMargin = 0.5

// expected gives what the tiny model says after each of the plan's prompts, as far as no rounding can change it, by a plain
// implementation of our own; nil for other models, for which that would take too long, and where numbers are too coarse to tell.
func expected(m engine.Model, p plan.Plan) (map[string][]int, error) {
	if m.SHA256 != tiny.SHA256 || p.LlamaCpp.Coarse() {
		return nil, nil
	}
	tokenizer, model, err := reference.Open(m.Path)
	if err != nil {
		return nil, err
	}
	out := map[string][]int{}
	for _, prompt := range p.Prompts {
		ids := tokenizer.Encode(prompt)
		if len(ids) == 0 || len(ids)+p.MaxTokens > p.Context {
			continue // the engines say what is wrong with it
		}
		greedy, margins, err := model.Greedy(ids, p.MaxTokens)
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
