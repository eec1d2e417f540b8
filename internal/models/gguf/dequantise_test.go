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

	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
)

// golden returns blocks of a type and their values by the reference (testdata/make.py).
func golden(t testing.TB, kind gguf.Type) (blocks []byte, want []float32) {
	t.Helper()
	data := check.Read(t, filepath.Join("testdata", strings.ToLower(kind.String())+".golden"))
	values, bytes := kind.Block()
	n := int64(len(data)) / (bytes + 4*values)
	if n < 12 || n*(bytes+4*values) != int64(len(data)) {
		t.Fatalf("the golden file of %v has %d bytes", kind, len(data))
	}
	want = make([]float32, n*values)
	for i := range want {
		want[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[n*bytes+4*int64(i):]))
	}
	return data[:n*bytes], want
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
	files, err := filepath.Glob("testdata/*.golden")
	check.Err(t, err)
	readable := 0
	for kind := range gguf.Type(64) {
		if !kind.Readable() {
			continue
		}
		readable++
		blocks, want := golden(t, kind)
		got := make([]float32, len(want))
		check.Err(t, gguf.Dequantise(kind, blocks, got))
		if i := differ(got, want); i >= 0 {
			t.Errorf("%v: value %d is %g, want %g", kind, i, got[i], want[i])
		}
	}
	if readable != len(files) {
		t.Errorf("%d types are readable, %d have golden files", readable, len(files))
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

// stored is a tensor of a type, with these blocks.
func stored(name string, kind gguf.Type, blocks []byte, shape ...uint64) gguf.Weights {
	return gguf.Weights{Name: name, Shape: shape, Type: kind,
		Blocks: func(write func([]byte) error) error { return write(blocks) }}
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
			values, bytes := kind.Block()
			w = append(w, stored(fmt.Sprint("weights", i), kind, make([]byte, 256/values*bytes), 256, 1))
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
	f, err := read(written(t, nil, []gguf.Weights{stored("weights", gguf.Q4_K, blocks, 512, 7)}))
	check.Err(t, err)
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
