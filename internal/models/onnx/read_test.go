package onnx

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/onnx/convert"
	"llmparity/internal/models/tiny"
)

// written is a folder with a random model.
func written(t testing.TB) Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "random.gguf")
	spec := tiny.Spec{Layers: 1, Hidden: 64, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 64, Seed: 1}
	check.Err(t, tiny.WriteRandomFile(context.Background(), path, spec))
	dir := filepath.Join(t.TempDir(), "model")
	_, err := convert.Write(context.Background(), path, dir, convert.Options{Context: 16})
	check.Err(t, err)
	m, err := Open(dir)
	check.Err(t, err)
	return m
}

func TestRefusals(t *testing.T) {
	w := written(t)
	file := filepath.Join(w.Dir, filepath.FromSlash(w.File))
	whole := check.Read(t, file)
	refused := func(why string) {
		t.Helper()
		_, err := Open(w.Dir)
		if fault.Of(err) != fault.BadModel || !strings.Contains(err.Error(), why) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %q", err, why)
		}
	}
	check.Err(t, os.WriteFile(file, whole[:len(whole)/2], 0o600))
	refused("damaged")
	outside := bytes.Replace(whole, []byte("model.onnx_data"), []byte("../../../x/data"), 1)
	check.Err(t, os.WriteFile(file, outside, 0o600))
	refused("not in its folder")
	check.Err(t, os.WriteFile(file, whole, 0o600))
	check.Err(t, os.Remove(filepath.Join(w.Dir, filepath.FromSlash(w.Data[0]))))
	refused("lacks onnx/model.onnx_data")
	check.Err(t, os.WriteFile(filepath.Join(w.Dir, "onnx", "model_q4.onnx"), whole, 0o600))
	refused("2 ONNX models: model.onnx, model_q4.onnx")
}

// FuzzRead reads damaged files. What is read refers to nothing outside the folder.
func FuzzRead(f *testing.F) {
	w := written(f)
	f.Add(check.Read(f, filepath.Join(w.Dir, filepath.FromSlash(w.File))))
	f.Add([]byte{0x3a, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := Model{Stored: map[string]int64{}}
		if err := m.read(span{bytes.NewReader(b), 0, int64(len(b))}); err != nil {
			return
		}
		for _, name := range m.Data {
			if !filepath.IsLocal(name) {
				t.Errorf("data in %q", name)
			}
		}
		for kind, n := range m.Stored {
			if n < 0 {
				t.Errorf("%d bytes of %s", n, kind)
			}
		}
	})
}
