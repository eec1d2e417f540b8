// Package tinytest provides the tiny model and random ones to tests, with the answers of the reference.
package tinytest

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/models/tokenizer"
)

// Tiny returns the tiny model in memory.
func Tiny(t testing.TB) *gguf.File {
	t.Helper()
	return inMemory(t, tiny.Name, tiny.Write)
}

// Random returns a random model in memory.
func Random(t testing.TB, spec tiny.Spec) *gguf.File {
	t.Helper()
	return inMemory(t, spec.Name, func(w io.Writer) error { return tiny.WriteRandom(w, spec) })
}

func inMemory(t testing.TB, name string, write func(io.Writer) error) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	check.Err(t, write(&b))
	f, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), name)
	check.Err(t, err)
	return f
}

// Oracle returns a model's tokenizer and reference forward pass.
func Oracle(t testing.TB, f *gguf.File) (*tokenizer.Tokenizer, *reference.Model) {
	t.Helper()
	tokens, m, err := reference.Read(f)
	check.Err(t, err)
	return tokens, m
}

// Answer is a prompt and the reference's answer.
type Answer struct {
	Prompt
	In, Out []int
	Margins []float64 // lead of each token's logit over the second
}

// Least returns the smallest margin.
func (a Answer) Least() float64 { return slices.Min(a.Margins) }

// Distinct counts the different tokens.
func (a Answer) Distinct() int {
	return len(slices.Compact(slices.Sorted(slices.Values(a.Out))))
}

// Answers returns the reference's n greedy tokens for each prompt.
func Answers(t testing.TB, f *gguf.File, prompts []Prompt, n int) []Answer {
	t.Helper()
	tokens, m := Oracle(t, f)
	var all []Answer
	for _, p := range prompts {
		a := Answer{Prompt: p, In: tokens.Prompt(p.Text)}
		var err error
		if a.Out, a.Margins, err = m.Greedy(a.In, n); err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		all = append(all, a)
	}
	return all
}
