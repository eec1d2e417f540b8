package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"llmparity/internal/plan"
)

// head is a plan that lacks what is asked, and how long an answer is.
const head = "name: p\nengines: [webllm, llamacpp]\nmodel: tiny\n"

func parse(t testing.TB, text string) plan.Plan {
	t.Helper()
	p, err := plan.Parse([]byte(text), "p.yaml")
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return p
}

// cells writes out what is asked of whom.
func cells(p plan.Plan) []string {
	var out []string
	for s := range p.Setups() {
		for _, shape := range s.Shapes {
			for _, e := range s.Plan.Engines {
				if !shape.Asks(e) {
					continue
				}
				out = append(out, fmt.Sprintf("%d %s %s prompt %d%q in %d out %d ctx %d %s kv %s v%s t%d %s slots %d", s.ID, s.Plan.Model, e, shape.PromptID,
					shape.Prompt, shape.InputTokens, shape.MaxTokens, s.Plan.Context, s.Plan.DType, s.Plan.KVDType, s.Plan.WebLLMVersion, s.Plan.Threads,
					s.Plan.Start, s.Plan.Slots))
			}
		}
	}
	return out
}

func TestCountIsWhatIsExpanded(t *testing.T) {
	for text, want := range map[string][2]int64{
		"prompts: [a, b]\nmax_tokens: 4\n":                                                         {1, 4},
		"input_lengths: [8, 16, 32]\noutput_lengths: [4, 8]\n":                                     {1, 12},
		"input_lengths: 8\nmax_tokens: 4\ndtype: [f32, f16]\n":                                     {2, 4},
		"input_lengths: 8\nmax_tokens: 4\ncontexts: [64, 128]\nstarts: [cold, warm]\n":             {4, 8},
		"input_lengths: 8\nmax_tokens: 4\nwebllm_versions: [0.2.82, 0.2.83, 0.2.86]\n":             {3, 4},
		"input_lengths: 8\nmax_tokens: 4\nthreads: [1, 2]\n":                                       {2, 3},
		"input_lengths: 8\nmax_tokens: 4\nthreads: [1, 2]\nwebllm_versions: [0.2.82, 0.2.83]\n":    {3, 4},
		"input_lengths: 8\nmax_tokens: 4\nconcurrency: [1, 2, 4]\nbatch_sizes: [1]\n":              {3, 6},
		"input_lengths: 8\nmax_tokens: 4\nexclude: [{engine: webllm}]\n":                           {1, 1},
		"input_lengths: [8, 16]\nmax_tokens: 4\nexclude: [{engine: webllm, input_length: 8}]\n":    {1, 3},
		"input_lengths: [8, 16]\nmax_tokens: 4\ncontexts: [64, 128]\nexclude: [{context: 64}]\n":   {1, 4},
		"input_lengths: [8, 16]\nmax_tokens: 4\ninclude: [{engine: webllm, context: 64}]\n":        {2, 4},
		"input_lengths: [8, 16]\nmax_tokens: 4\ninclude: [{input_length: 99}]\n":                   {2, 6},
		"input_lengths: [8, 16]\nmax_tokens: 4\ninclude: [{model: other, input_length: [1, 2]}]\n": {2, 8},
	} {
		p := parse(t, head+text)
		setups, n, err := p.Count()
		if err != nil || setups != want[0] || n != want[1] {
			t.Errorf("%s: %d setups, %d cells, %v; want %v", text, setups, n, err, want)
		}
		if got := cells(p); int64(len(got)) != n {
			t.Errorf("%s: %d cells are expanded, %d counted:\n%s", text, len(got), n, strings.Join(got, "\n"))
		}
	}
}
