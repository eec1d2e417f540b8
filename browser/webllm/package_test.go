package webllm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/gguf"
	"llmparity/internal/model"
	"llmparity/internal/tiny"
)

// halved writes the tiny model with its matrices as F16; the bytes are those of other numbers, which is no matter here.
func halved(t *testing.T, path string) {
	t.Helper()
	if err := tiny.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range f.Tensors {
		if len(info.Shape) == 2 {
			data[bytes.Index(data, []byte(info.Name))+len(info.Name)+4+16] = byte(gguf.F16)
		}
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDifferentComputeDTypesAreReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	for dtype, write := range map[string]func(){
		"f32": func() {
			if err := tiny.WriteFile(path); err != nil {
				t.Fatal(err)
			}
		},
		"f16": func() { halved(t, path) },
	} {
		write()
		m, err := model.Open(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if m.DType != dtype {
			t.Errorf("the weights are %s, want %s", m.DType, dtype)
		}
		p := Package{DType: F32, Policy: map[string]string{}}
		otherArithmetic(&p, m.DType)
		if dtype == F32 {
			if len(p.Warnings)+len(p.Policy) > 0 {
				t.Errorf("f32 weights: %+v", p)
			}
			continue
		}
		if len(p.Warnings) != 1 || p.Warnings[0].Code != "weights-differ" ||
			!strings.Contains(p.Warnings[0].Text, "are f16:") ||
			p.Policy["weights"] != "dequantised to f32 from f16" {
			t.Errorf("f16 weights: %+v", p)
		}
	}
}
