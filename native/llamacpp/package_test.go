package llamacpp

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/text/unicode/norm"

	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/models/tokenizer/tokenizertest"
)

// unpacked makes a WebLLM package of a small model with a tokenizer, and of that a GGUF.
func unpacked(t *testing.T, k tokenizertest.Kind) string {
	t.Helper()
	a := gguf.Architecture{Name: gguf.Llama, ContextLength: 1024, EmbeddingLength: 32, BlockCount: 1,
		FeedForwardLength: 32, HeadCount: 2, HeadCountKV: 2, HeadDim: 16, VocabSize: len(k.Vocabulary.Tokens),
		RMSEpsilon: 1e-5, RopeBase: 10000}
	metadata := slices.Concat([]gguf.Entry{{Key: "general.architecture", Value: a.Name}}, a.Metadata(), k.Metadata)
	var weights []gguf.Weights
	for _, w := range a.Tensors() {
		n := uint64(1)
		for _, d := range w.Shape {
			n *= d
		}
		weights = append(weights, gguf.Weights{Name: w.Name, Shape: w.Shape, Values: make([]float32, n)})
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.gguf"), filepath.Join(dir, "out.gguf")
	var b bytes.Buffer
	check.Err(t, gguf.Write(&b, metadata, weights))
	check.Err(t, os.WriteFile(in, b.Bytes(), 0o600))
	p, err := mlc.Write(t.Context(), in, filepath.Join(dir, "package"), mlc.Options{})
	check.Err(t, err)
	g, err := mlc.AsGGUF(p.Dir, k.Name)
	check.Err(t, err)
	check.Err(t, g.Write(t.Context(), out))
	return out
}

// llama-server finds in the GGUF of a package the tokens that the tokenizers library, which WebLLM uses, finds with the
// package's tokenizer.json.
func TestTokensOfPackages(t *testing.T) {
	texts := tokenizertest.Texts(t)
	if len(texts) < 200 {
		t.Fatalf("%d texts", len(texts))
	}
	for _, k := range tokenizertest.Kinds(t) {
		t.Run(k.Name, func(t *testing.T) {
			path := unpacked(t, k)
			own, err := tokenizer.Open(path)
			check.Err(t, err)
			s, _ := loadedSession(t, at(path))
			srv, err := s.own.Now()
			check.Err(t, err)
			for i, text := range texts {
				if got := own.Prompt(text); !slices.Equal(got, k.IDs[i]) {
					t.Errorf("%q: got %v, want %v", text, got, k.IDs[i])
				}
				if k.Vocabulary.Composes() {
					text = norm.NFC.String(text) // which llama.cpp leaves to others
				}
				got, err := srv.client.tokenize(t.Context(), text)
				if err != nil || !slices.Equal(got, k.IDs[i]) {
					t.Errorf("%q: llama-server has %v, want %v (%v)", text, got, k.IDs[i], err)
				}
			}
		})
	}
}
