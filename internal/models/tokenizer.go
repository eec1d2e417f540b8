package models

import (
	"fmt"
	"strings"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tokenizer"
)

// Tokenizer reads the vocabulary of a GGUF or a package.
func Tokenizer(m Model) (*tokenizer.Tokenizer, error) {
	if m.Format == WebLLM && m.Path != "" {
		v, err := mlc.Tokenizer(m.Path)
		if err != nil {
			return nil, err
		}
		return tokenizer.New(v), nil
	}
	if m.Format != GGUF {
		return nil, fmt.Errorf("the vocabulary of a %s model cannot be read", m.Format)
	}
	return tokenizer.Open(m.Path)
}

// Pieces returns a function from token ids to texts; nil if the model is neither a GGUF nor a package.
func Pieces(m Model) func(ids []int) map[int]string {
	if m.Format != GGUF && m.Format != WebLLM {
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
			case v.Kind == gguf.SentencePiece: // Decode would drop a leading space
				out[id] = strings.ReplaceAll(v.Tokens[id], "\u2581", " ")
			default:
				out[id] = strings.ToValidUTF8(t.Decode([]int{id}), "\ufffd")
			}
		}
		return out
	}
}
