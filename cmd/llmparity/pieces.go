package main

import (
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/gguf"
	"llmparity/internal/tiny/reference"
)

// pieces gives the texts of a model's tokens by its file's vocabulary; nil where there is no such file, or it can't be
// told.
func pieces(m engine.Model) func(ids []int) map[int]string {
	if m.Format != "gguf" {
		return nil
	}
	return func(ids []int) map[int]string {
		f, err := gguf.Open(m.Path)
		if err != nil {
			return nil
		}
		defer f.Close()
		v, err := f.Vocabulary()
		if err != nil {
			return nil
		}
		t, out := reference.NewTokenizer(v), map[int]string{}
		for _, id := range ids {
			switch {
			case id < 0 || id >= len(v.Tokens):
			case v.Kind == gguf.SentencePiece: // decoding a text takes a space from its beginning
				out[id] = strings.ReplaceAll(v.Tokens[id], "\u2581", " ")
			default:
				out[id] = strings.ToValidUTF8(t.Decode([]int{id}), "\ufffd")
			}
		}
		return out
	}
}
