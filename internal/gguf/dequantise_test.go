package gguf_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/gguf"
)

// blockOf has the values and bytes of a block.
var blockOf = map[gguf.Type]struct{ values, bytes int }{
	gguf.F32: {1, 4}, gguf.F16: {1, 2}, gguf.BF16: {1, 2}, gguf.Q4_0: {32, 18}, gguf.Q4_1: {32, 20},
	gguf.Q5_0: {32, 22},
	gguf.Q5_1: {32, 24}, gguf.Q8_0: {32, 34}, gguf.Q2_K: {256, 84}, gguf.Q3_K: {256, 110}, gguf.Q4_K: {256, 144},
	gguf.Q5_K: {256, 176}, gguf.Q6_K: {256, 210},
}

// golden returns blocks of a type and their values by the reference (testdata/make.py).
func golden(t testing.TB, kind gguf.Type) (blocks []byte, want []float32) {
	t.Helper()
	data := check.Read(t, filepath.Join("testdata", strings.ToLower(kind.String())+".golden"))
	l := blockOf[kind]
	n := len(data) / (l.bytes + 4*l.values)
	if n < 12 || n*(l.bytes+4*l.values) != len(data) {
		t.Fatalf("the golden file of %v has %d bytes", kind, len(data))
	}
	want = make([]float32, n*l.values)
	for i := range want {
		want[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[n*l.bytes+4*i:]))
	}
	return data[:n*l.bytes], want
}

// differ returns the first value with different bits, or -1.
func differ(got, want []float32) int {
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			return i
		}
	}
	return -1
}

func TestDequantiseMatchesReference(t *testing.T) {
	for kind := range gguf.Type(64) {
		if _, known := blockOf[kind]; known != kind.Readable() {
			t.Errorf("%v is readable: %v; there is a golden file: %v", kind, !known, known)
		}
	}
	for kind := range blockOf {
		blocks, want := golden(t, kind)
		got := make([]float32, len(want))
		check.Err(t, gguf.Dequantise(kind, blocks, got))
		if i := differ(got, want); i >= 0 {
			t.Errorf("%v: value %d is %g, want %g", kind, i, got[i], want[i])
		}
	}
}

func TestEveryHalf(t *testing.T) {
	for h := range 1 << 16 {
		exponent, fraction := h>>10&31, float64(h&1023)
		want := math.Ldexp(1024+fraction, exponent-25)
		switch {
		case exponent == 0:
			want = math.Ldexp(fraction, -24)
		case exponent == 31 && fraction == 0:
			want = math.Inf(1)
		case exponent == 31:
			want = math.NaN()
		}
		if h>>15 == 1 {
			want = math.Copysign(want, -1)
		}
		got := make([]float32, 1)
		check.Err(t, gguf.Dequantise(gguf.F16, []byte{byte(h), byte(h >> 8)}, got))
		if v := float64(got[0]); v != want && !(math.IsNaN(v) && math.IsNaN(want)) ||
			math.Signbit(v) != math.Signbit(want) {
			t.Fatalf("half %#04x is %v, want %v", h, v, want)
		}
	}
}

// withType returns a file with one tensor of a type.
func withType(t *testing.T, kind gguf.Type, shape []uint64, blocks []byte) *gguf.File {
	t.Helper()
	n := uint64(1)
	for _, d := range shape {
		n *= d
	}
	b := written(t, nil, []gguf.Weights{{Name: "weights", Shape: shape, Values: make([]float32, n)}})
	b = patch(t, b, "weights", 4+8*len(shape), byte(kind))
	f, err := read(b)
	check.Err(t, err)
	copy(b[f.Tensors[0].Offset:], blocks)
	return f
}

// Files of several quantised types go by the name that llama-quantize gives such a mixture.
func TestNameOfAMixture(t *testing.T) {
	for _, x := range []struct {
		kind  uint32
		types []gguf.Type
		want  string
	}{
		{15, []gguf.Type{gguf.Q5_0, gguf.Q5_0, gguf.Q8_0, gguf.F32}, "q4_k_m"},
		{15, []gguf.Type{gguf.Q4_K, gguf.Q4_K, gguf.F32, gguf.F16}, "q4_k"},
		{2, []gguf.Type{gguf.Q4_0, gguf.Q4_0, gguf.Q6_K, gguf.F32}, "q4_0"},
		{0, []gguf.Type{gguf.F32}, "f32"},
	} {
		var w []gguf.Weights
		for i, kind := range x.types {
			w = append(w, gguf.Weights{Name: fmt.Sprint("weights", i), Shape: []uint64{256, 1}, Type: kind,
				Blocks: func(write func([]byte) error) error {
					return write(make([]byte, 256/blockOf[kind].values*blockOf[kind].bytes))
				}})
		}
		f, err := read(written(t, []gguf.Entry{{Key: "general.file_type", Value: x.kind}}, w))
		check.Err(t, err)
		if got := f.DType(); got != x.want {
			t.Errorf("file type %d of %v is %s, want %s", x.kind, x.types, got, x.want)
		}
	}
}

func TestRowsInPieces(t *testing.T) {
	blocks, want := golden(t, gguf.Q4_K) // 14 blocks
	f := withType(t, gguf.Q4_K, []uint64{512, 7}, blocks)
	if f.Dominant() != gguf.Q4_K {
		t.Errorf("the dominant type is %v", f.Dominant())
	}
	for n, sizes := range map[int][]int{0: {1, 1, 1, 1, 1, 1, 1}, 3: {3, 3, 1}, 7: {7}, 1 << 40: {7}} {
		var rows gguf.Rows
		check.Err(t, rows.Reset(f, f.Tensors[0], n))
		var all []float32
		var got []int
		for {
			v, err := rows.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			check.Err(t, err)
			all, got = append(all, v...), append(got, len(v)/512)
		}
		if !slices.Equal(got, sizes) || len(all) != len(want) || differ(all, want) >= 0 {
			t.Errorf("%d at a time: got %d values in rows of %v, want %v", n, len(all), got, sizes)
		}
	}
}
