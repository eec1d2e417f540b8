package resolve

import (
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/reference"
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
// activations are computed in half precision.
func expected(s *Setup) (map[string][]int, error) {
	if s.Model.SHA256 != tiny.SHA256 || s.Plan.DType == "f16" {
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
			continue // the engines say what is wrong with it
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
