package models

import (
	"fmt"
	"strings"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tokenizer"
)

// Tokenizer reads a model's vocabulary.
func Tokenizer(m Model) (*tokenizer.Tokenizer, error) {
	if !m.Reads() || m.Path == "" {
		return nil, fmt.Errorf("the vocabulary of a %s model cannot be read", m.Format)
	}
	return named(m.Format).tokens(m.Path)
}

// Pieces returns a function from token ids to texts; nil if its format has no vocabulary that can be read.
func Pieces(m Model) func(ids []int) map[int]string {
	if !m.Reads() {
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
