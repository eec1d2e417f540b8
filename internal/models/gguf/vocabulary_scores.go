package gguf

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Space is the character for a space in SentencePiece vocabularies.
const Space = "▁"

// ByteToken returns the SentencePiece token of a single byte.
func ByteToken(b byte) string { return fmt.Sprintf("<0x%02X>", b) }

// scored reads the rest of a SentencePiece vocabulary and derives its merges.
func (f *File) scored(v *Vocabulary) error {
	ids := make(map[string]int, len(v.Tokens))
	for id, text := range v.Tokens {
		ids[text] = id
	}
	for b := range 256 {
		if _, ok := ids[ByteToken(byte(b))]; !ok {
			return f.unsupported("tokenizer %q needs a token for every byte, but %s is missing",
				modelSentencePiece, ByteToken(byte(b)))
		}
	}
	const key = "tokenizer.ggml.scores"
	value, _ := f.Lookup(key)
	scores, ok := value.([]float32)
	if !ok || len(scores) != len(v.Tokens) {
		return f.want(key, "an array of float32, one per token")
	}
	for id, s := range scores {
		if math.IsNaN(float64(s)) {
			return f.bad(again, "the score of token %d in %s is NaN", id, key)
		}
	}
	v.Scores = scores
	joins := v.joins(ids)
	for i := 1; i < len(joins); i++ {
		a, b := v.Tokens[joins[i-1].token], v.Tokens[joins[i].token]
		if a != b && scores[joins[i-1].token] == scores[joins[i].token] && strings.Trim(a+b, Space) != "" {
			return f.unsupported("tokens %q and %q have the same score: merges cannot express which comes first", a, b)
		}
	}
	for _, j := range joins {
		v.Merges = append(v.Merges, v.Tokens[j.token][:j.cut]+" "+v.Tokens[j.token][j.cut:])
	}
	return nil
}

// join makes a token by joining two others.
type join struct{ token, cut int }

// joins returns the ways to make normal tokens from normal tokens, highest score first. With equal scores,
// SentencePiece joins the leftmost pair first, which merges cannot express. But if all these tokens are runs of spaces,
// as in known vocabularies, the same result follows from preferring the longest left part, then the longest right part.
func (v Vocabulary) joins(ids map[string]int) []join {
	normal := func(text string) bool {
		id, ok := ids[text]
		return ok && v.Types[id] == TokenNormal
	}
	var list []join
	for id, text := range v.Tokens {
		// Texts have no spaces after Space has replaced them.
		if v.Types[id] != TokenNormal || strings.Contains(text, " ") {
			continue
		}
		for cut := range text {
			if cut > 0 && normal(text[:cut]) && normal(text[cut:]) {
				list = append(list, join{id, cut})
			}
		}
	}
	length := utf8.RuneCountInString
	slices.SortStableFunc(list, func(a, b join) int {
		x, y := v.Tokens[a.token], v.Tokens[b.token]
		return cmp.Or(cmp.Compare(v.Scores[b.token], v.Scores[a.token]),
			cmp.Compare(length(y[:b.cut]), length(x[:a.cut])), cmp.Compare(length(y[b.cut:]), length(x[a.cut:])))
	})
	return list
}
