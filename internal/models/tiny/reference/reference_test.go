package reference_test

import (
	"encoding/json"
	"slices"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/tiny/tinytest"
)

// answer is what llama-server gave for a prompt of the tiny model, greedily and with a float32 cache.
type answer struct {
	Name string `json:"name"`
	In   []int  `json:"in"`
	Out  []int  `json:"out"`
}

func TestReferenceAgreesWithLlamaServer(t *testing.T) {
	tokens, m := tinytest.Oracle(t, tinytest.Tiny(t))
	b := check.Read(t, "testdata/llama-server.json")
	var answers []answer
	check.Err(t, json.Unmarshal(b, &answers))
	prompts := tinytest.Prompts()
	if len(answers) != len(prompts) {
		t.Fatalf("%d answers to %d prompts", len(answers), len(prompts))
	}
	for i, p := range prompts {
		if in := tokens.Encode(p.Text); p.Name != answers[i].Name || !slices.Equal(in, answers[i].In) {
			t.Errorf("%s: tokens are %v, llama-server has %v", p.Name, in, answers[i].In)
		}
		if back := tokens.Decode(answers[i].In); back != p.Text {
			t.Errorf("%s: comes back as %q", p.Name, back)
		}
		out, margins, err := m.Greedy(answers[i].In, len(answers[i].Out))
		check.Err(t, err)
		if !slices.Equal(out, answers[i].Out) || len(margins) != len(out) || slices.Min(margins) <= 0 {
			t.Errorf("%s: got %v, llama-server gave %v; margins %v", p.Name, out, answers[i].Out, margins)
		}
	}
}

func TestGreedyRefuses(t *testing.T) {
	_, m := tinytest.Oracle(t, tinytest.Tiny(t))
	for name, prompt := range map[string][]int{"nothing": {}, "no such token": {512}, "too much": make([]int, 1020)} {
		if _, _, err := m.Greedy(prompt, 8); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
