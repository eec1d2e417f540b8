package model

import (
	"fmt"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/gguf"
	"llmparity/internal/tokenizer"
)

// Tokenizer reads a model's vocabulary.
func Tokenizer(m engine.Model) (*tokenizer.Tokenizer, error) {
	if m.Format != GGUF {
		return nil, fmt.Errorf("no vocabulary of a %s model is read", m.Format)
	}
	return tokenizer.Open(m.Path)
}

// Pieces gives the texts of a model's tokens by its file's vocabulary; nil where there is no such file.
func Pieces(m engine.Model) func(ids []int) map[int]string {
	if m.Format != GGUF {
		return nil
	}
	return func(ids []int) map[int]string {
		t, err := Tokenizer(m)
		if err != nil {
			return nil
		}
		v, out := t.Vocabulary, map[int]string{}
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
