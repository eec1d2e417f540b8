package mlc

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny"
)

// FuzzWrite looks for a panic, for a package that isn't whole, and for anything left behind by one that can't be made.
func FuzzWrite(f *testing.F) {
	for _, s := range []tiny.Spec{
		{Layers: 1, Hidden: 4, Heads: 2, FFN: 2, Vocab: 512, Bias: true, Window: 8},
		{Layers: 1, Hidden: 4, Heads: 2, KVHeads: 1, FFN: 2, Vocab: 512, Tied: true, Architecture: gguf.Qwen2,
			RopeScaling: tiny.Linear},
		{Layers: 1, Hidden: 4, Heads: 1, HeadDim: 6, FFN: 2, Vocab: 512, RopeScaling: tiny.Llama3,
			Tokenizer: tiny.SentencePiece},
	} {
		var b bytes.Buffer
		check.Err(f, tiny.WriteRandom(&b, s))
		f.Add(b.Bytes(), true)
		f.Add(b.Bytes(), false)
	}
	f.Fuzz(func(t *testing.T, content []byte, halves bool) {
		dir := t.TempDir()
		path, parent := filepath.Join(dir, "model.gguf"), filepath.Join(dir, "packages")
		check.Err(t, os.WriteFile(path, content, 0o600))
		options := Options{}
		if halves {
			options.DType = Float16
		}
		_, err := Write(t.Context(), path, filepath.Join(parent, "package"), options)
		if err == nil {
			check.Err(t, sound(filepath.Join(parent, "package")))
			return
		}
		if c := fault.Of(err); c != fault.BadModel && c != fault.UnknownArch {
			t.Fatalf("%v has class %s", err, c)
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Fatalf("%v, and %v is left", err, left)
		}
	})
}
