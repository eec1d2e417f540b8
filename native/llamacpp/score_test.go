package llamacpp

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestProbabilities(t *testing.T) {
	const lowest = "-3.4028234663852886e+38" // what a probability of 0 in float32 comes to
	for name, c := range map[string]struct{ text, wrong string }{
		"as it should be": {`{"tokens":[7],"completion_probabilities":[{"id":7,"logprob":-3,"top_logprobs":[{"id":2,"logprob":-0.1},{"id":7,"logprob":-3}]}]}`, ""},
		"small ones": {`{"completion_probabilities":[{"id":7,"logprob":` + lowest +
			`,"top_logprobs":[{"id":2,"logprob":0},{"id":3,"logprob":-90},{"id":4,"logprob":` + lowest + `}]}]}`, ""},
		"before ids": {`{"completion_probabilities":[{"content":"a","probs":[{"tok_str":"a","prob":0.5}]}]}`,
			"a newer one"},
		"none":          {`{"tokens":[7]}`, "a newer one"},
		"another token": {`{"completion_probabilities":[{"id":8,"logprob":-3,"top_logprobs":[]}]}`, "was forced"},
		"no candidate": {`{"completion_probabilities":[{"id":7,"logprob":-3,"top_logprobs":[{"id":7,"logprob":0}]}]}`,
			"1 candidates"},
	} {
		var p probabilities
		if err := json.Unmarshal([]byte(c.text), &p); err != nil {
			t.Fatal(err)
		}
		s, err := p.score(7)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %q", name, err, c.wrong)
			}
			continue
		}
		if err != nil || s.Forced != 7 || len(s.Top) != 2 || math.IsNaN(s.LogProb) != (name == "small ones") {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if err := s.Sound(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
