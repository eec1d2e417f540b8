package tiny_test

import (
	"io"
	"math"
	"path/filepath"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tiny"
)

// opened writes a model and opens it.
func opened(t *testing.T, write func(path string) error) *gguf.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	check.Err(t, write(path))
	f, err := gguf.Open(path)
	check.Err(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// Each matrix has the type, and values within half a step of the original: a step is a fraction of the largest value of
// a block. Norms are as they were.
func TestFormsRoundTheModel(t *testing.T) {
	original := opened(t, tiny.WriteFile)
	for _, form := range tiny.Forms() {
		f := opened(t, form.WriteFile)
		if f.DType() != form.Type.DType().Name {
			t.Errorf("%s: its dtype is %s", form.Type, f.DType())
		}
		steps := map[gguf.Type]float64{gguf.Q4_0: 8, gguf.Q8_0: 127}[form.Type]
		for i, tensor := range f.Tensors {
			got, err := f.Floats(tensor)
			check.Err(t, err)
			want, err := original.Floats(original.Tensors[i])
			check.Err(t, err)
			if matrix := len(tensor.Shape) > 1; matrix != (tensor.Type == form.Type) {
				t.Errorf("%s: %s is %s", form.Type, tensor.Name, tensor.Type)
			}
			for at := 0; at < len(want); at += 32 {
				most := 0.0
				for _, v := range want[at:min(at+32, len(want))] {
					most = max(most, math.Abs(float64(v)))
				}
				for j := at; j < min(at+32, len(want)); j++ {
					apart := math.Abs(float64(got[j] - want[j]))
					// Q4_0 has one step less on one side, and scales are rounded, too.
					if tensor.Type == gguf.F32 && apart > 0 || apart > 1.01*most/steps {
						t.Fatalf("%s: %s[%d] is %g, was %g", form.Type, tensor.Name, j, got[j], want[j])
					}
				}
			}
		}
	}
}

// Blocks of Q4_0 are llama.cpp's, but for the last bit of scales.
func TestFormIsLlamaQuantizes(t *testing.T) {
	original := opened(t, tiny.WriteFile)
	var form tiny.Form
	for _, o := range tiny.Forms() {
		if o.Type == gguf.Q4_0 {
			form = o
		}
	}
	f := opened(t, form.WriteFile)
	const name = "blk.0.ffn_down.weight"
	tensor, _ := f.Tensor(name)
	unquantised, _ := original.Tensor(name)
	values, err := original.Floats(unquantised)
	check.Err(t, err)
	want, err := mlc.QuantizeQ4(nil, values)
	check.Err(t, err)
	got, err := io.ReadAll(f.Data(tensor))
	check.Err(t, err)
	for i := 0; i < len(want); i += 18 {
		if string(got[i+2:i+18]) != string(want[i+2:i+18]) || got[i+1] != want[i+1] && got[i] != 0xff {
			t.Fatalf("block %d is %x, want %x", i/18, got[i:i+18], want[i:i+18])
		}
	}
}
