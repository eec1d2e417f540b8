package gguf

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// blocksOf streams bytes a piece at a time.
func blocksOf(b []byte, piece int) func(func([]byte) error) error {
	return func(write func([]byte) error) error {
		for part := range slices.Chunk(b, piece) {
			if err := write(part); err != nil {
				return err
			}
		}
		return nil
	}
}

// Weights are compared by value: in any type, order and pieces. The first value that differs is named.
func TestDifference(t *testing.T) {
	nan := float32(math.NaN())
	f32 := func(name string, values ...float32) Weights {
		return Weights{Name: name, Shape: []uint64{uint64(len(values))}, Values: values}
	}
	f16 := func(name string, b ...byte) Weights {
		return Weights{Name: name, Shape: []uint64{uint64(len(b) / 2)}, Type: F16, Blocks: blocksOf(b, 2)}
	}
	one := []Weights{f32("token_embd.weight", 1, 0.5, -2), f32("output_norm.weight", nan)}
	// 1, 0.5 and -2 as float16
	half := f16("token_embd.weight", 0, 0x3c, 0, 0x38, 0, 0xc0)
	for _, c := range []struct {
		name  string
		other []Weights
		want  string // of the difference, or of the error
	}{
		{"other type and order", []Weights{one[1], half}, ""},
		{"explicit output", append([]Weights{f32("output.weight", 1, 0.5, -2)}, one...), ""},
		{"other output", append([]Weights{f32("output.weight", 1, 0.5, -3)}, one...),
			"tensor output.weight differs: value 3"},
		{"divisors", append([]Weights{f32("rope_freqs.weight", 8)}, one...), ""},
		{"value", []Weights{f32("token_embd.weight", 1, 0.25, -2), one[1]},
			"tensor token_embd.weight differs: value 2 is 0."},
		{"number", []Weights{one[0], f32("output_norm.weight", 1)}, "tensor output_norm.weight differs: value 1 is "},
		{"shape", []Weights{f32("token_embd.weight", 1), one[1]},
			"tensor token_embd.weight has the shape ["},
		{"missing", one[:1], "only one of them has tensor output_norm.weight"},
		{"truncated", []Weights{{Name: half.Name, Shape: half.Shape, Type: F16, Blocks: blocksOf([]byte{0, 0x3c}, 2)},
			one[1]}, "unexpected EOF"},
	} {
		for _, pair := range [][2][]Weights{{one, c.other}, {c.other, one}} {
			got, err := Difference(t.Context(), pair[0], pair[1])
			if err != nil {
				got = err.Error()
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Difference(ctx, one, one); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	broken := errors.New("broken")
	_, err := Difference(t.Context(), one, []Weights{{Name: one[0].Name, Shape: one[0].Shape,
		Stream: func(func([]float32) error) error { return broken }}, one[1]})
	if !errors.Is(err, broken) {
		t.Errorf("a stream that fails: %v", err)
	}
}
