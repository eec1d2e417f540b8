package resolve

import (
	"maps"
	"slices"

	"llmparity/internal/engine"
	"llmparity/internal/rounding"
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/reference"
)

// sureMargin is the lead of the first logit over the second from which every engine is expected to choose that token:
// rounding can move two logits towards each other, on a GPU by more than elsewhere.
var sureMargin = 2 * rounding.Nats([]rounding.Arithmetic{rounding.Single, rounding.GPU})

// mostChecked limits the length of prompts and texts, because our implementation takes time that grows quadratically.
const mostChecked = 256

// expected returns what the tiny model generates after each prompt of a setup, as far as rounding can't change it,
// computed by our own implementation. It returns nil for other models, and for half precision.
func expected(s *Setup) (map[string][]int, error) {
	requantised := slices.ContainsFunc(slices.Collect(maps.Values(s.Plan.Sections)),
		func(said engine.Section) bool { return said["requantize"] != nil })
	if s.Model.SHA256 != tiny.SHA256 || s.Model.Forms != nil || s.Plan.DType == "f16" || s.Plan.KVDType == "f16" ||
		requantised {
		return nil, nil
	}
	tokenizer, m, err := reference.Open(s.Model.Path)
	if err != nil {
		return nil, err
	}
	out := map[string][]int{}
	longest := map[string]int{}
	for _, shape := range s.Shapes {
		longest[shape.Prompt] = max(longest[shape.Prompt], shape.MaxTokens)
	}
	for prompt, n := range longest {
		ids := tokenizer.Encode(prompt)
		if len(ids) == 0 || len(ids) > mostChecked || len(ids)+n > s.Plan.Context {
			continue // engines report the error
		}
		greedy, margins, err := m.Greedy(ids, min(n, mostChecked))
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
