package resolve

import (
	"maps"
	"slices"

	"llmparity/internal/engine"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/record/rounding"
)

// sureMargin is the lead of the first logit over the second from which every engine is expected to choose that token.
// Rounding can move two logits towards each other, in a float16 KV cache as Ollama's by more than elsewhere.
var sureMargin = 2 * rounding.Nats([]rounding.Arithmetic{rounding.Single, rounding.Sines, rounding.HalfCache})

// mostChecked limits the length of prompts and texts, because our implementation takes time that grows quadratically.
const mostChecked = 256

// expected returns what the tiny model generates after each prompt of a setup, as far as rounding can't change it,
// computed by our own implementation. It returns nil for other models, and where a plan asks for less precision.
func expected(s *Chosen) (map[string][]int, error) {
	rough := slices.ContainsFunc(slices.Collect(maps.Values(s.Plan.Sections)), roughens)
	if s.Model.SHA256 != tiny.SHA256 || s.Model.Forms != nil || s.Plan.DType == "f16" ||
		!slices.Contains([]string{"", "f32"}, s.Plan.KVDType) || rough {
		return nil, nil
	}
	tokenizer, m, err := reference.Open(s.Model.Path)
	if err != nil {
		return nil, err
	}
	out := map[string][]int{}
	longest := map[string]int{}
	for _, c := range s.Cells {
		longest[c.Prompt] = max(longest[c.Prompt], c.MaxTokens)
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

// roughens tells that settings quantise weights, or the KV cache: a q8_0 cache moves log-probabilities by up to 1.
func roughens(said engine.Section) bool {
	for _, cache := range []string{"cache_type_k", "cache_type_v", "kv_type"} {
		if said[cache] != nil && said[cache] != "f32" && said[cache] != "f16" {
			return true
		}
	}
	return said["requantize"] != nil
}
