// Package tokenizertest has small vocabularies of every kind that is supported, and the tokens that the tokenizers
// library gives for some hundred texts. testdata/make.py made them. Vocabularies of a useful size have no place here.
package tokenizertest

import (
	"bytes"
	"embed"
	"encoding/json"
	"testing"

	"llmparity/internal/gguf"
)

//go:embed testdata/*.json
var data embed.FS

// Kind is a tokenizer and what it makes of Texts.
type Kind struct {
	Name       string
	Vocabulary gguf.Vocabulary
	IDs        [][]int // of each text, with BOS where the model wants it
	SHA256     string  // of the tokenizer.json that gave IDs
}

// trained is a vocabulary file.
type trained struct {
	Tokens, Merges []string
	Types          []int32
	Scores         []float32
}

func read[T any](t testing.TB, name string) (v T) {
	t.Helper()
	b, err := data.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// Texts are those of which IDs are the tokens.
func Texts(t testing.TB) []string {
	t.Helper()
	return read[[]string](t, "texts.json")
}

// Kinds gives every kind, read from a model file's metadata as the reader reads it.
func Kinds(t testing.TB) []Kind {
	t.Helper()
	golden := read[map[string]struct {
		SHA256 string
		IDs    [][]int
	}](t, "golden.json")
	var kinds []Kind
	add := func(name string, metadata ...gguf.Entry) {
		k := Kind{Name: name, Vocabulary: vocabulary(t, metadata), IDs: golden[name].IDs, SHA256: golden[name].SHA256}
		kinds = append(kinds, k)
	}
	bpe, scored := read[trained](t, "bpe.json"), read[trained](t, "spm.json")
	for _, pre := range []string{gguf.PreGPT2, gguf.PreSmolLM, gguf.PreLlama3, gguf.PreQwen2} {
		add(pre, byteLevel(bpe, pre)...)
	}
	add("spm", sentencePiece(scored)...)
	add("spm-plain", append(sentencePiece(scored), gguf.Entry{Key: "tokenizer.ggml.add_space_prefix", Value: false},
		gguf.Entry{Key: "tokenizer.ggml.add_bos_token", Value: false})...)
	return kinds
}

func byteLevel(v trained, pre string) []gguf.Entry {
	const special = 2 // the last ones
	types := make([]int32, len(v.Tokens))
	for i := range types {
		types[i] = gguf.TokenNormal
		if i >= len(types)-special {
			types[i] = gguf.TokenControl
		}
	}
	return []gguf.Entry{
		{Key: "tokenizer.ggml.model", Value: "gpt2"}, {Key: "tokenizer.ggml.pre", Value: pre},
		{Key: "tokenizer.ggml.tokens", Value: v.Tokens}, {Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.merges", Value: v.Merges},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(len(types) - 2)},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(len(types) - 1)},
	}
}

func sentencePiece(v trained) []gguf.Entry {
	return []gguf.Entry{
		{Key: "tokenizer.ggml.model", Value: "llama"}, {Key: "tokenizer.ggml.tokens", Value: v.Tokens},
		{Key: "tokenizer.ggml.token_type", Value: v.Types}, {Key: "tokenizer.ggml.scores", Value: v.Scores},
	}
}

func vocabulary(t testing.TB, metadata []gguf.Entry) gguf.Vocabulary {
	t.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, metadata, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), "vocabulary.gguf")
	if err != nil {
		t.Fatal(err)
	}
	v, err := f.Vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
