package resolve

import (
	_ "embed"
	"encoding/json"
	"sync"

	"llmparity/internal/tiny"
)

// certain has what the tiny model says after the prompts of the built-in plans, as far as no rounding can change it.
// A test works it out with the reference implementation, which is not part of the program.
//
//go:embed expected.json
var certain []byte

// certainty is a prompt, how many tokens it has, and those that follow.
type certainty struct {
	Prompt string `json:"prompt"`
	Tokens int    `json:"tokens"`
	IDs    []int  `json:"ids"`
}

var certainties = sync.OnceValues(func() (all []certainty, err error) {
	err = json.Unmarshal(certain, &all)
	return all, err
})

// expected gives what the tiny model says after each prompt of a setup where that is known for certain; nil for other
// models, and where weights and activations are computed in half precision.
func expected(s *Setup) (map[string][]int, error) {
	if s.Model.SHA256 != tiny.SHA256 || s.Plan.DType == "f16" {
		return nil, nil
	}
	all, err := certainties()
	if err != nil {
		return nil, err
	}
	longest := map[string]int{}
	for _, shape := range s.Shapes {
		longest[shape.Prompt] = max(longest[shape.Prompt], shape.MaxTokens)
	}
	out := map[string][]int{}
	for _, c := range all {
		if n := longest[c.Prompt]; n > 0 && c.Tokens+n <= s.Plan.Context { // else the engines say what is wrong with it
			out[c.Prompt] = c.IDs[:min(n, len(c.IDs))]
		}
	}
	return out, nil
}
