package gguf

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"unicode/utf8"
)

// Space is the character that stands for a space in a SentencePiece vocabulary.
const Space = "▁"

// ByteToken is the token of a byte that no other token expresses, in a SentencePiece vocabulary.
func ByteToken(b byte) string { return fmt.Sprintf("<0x%02X>", b) }

// scored reads what a SentencePiece vocabulary has beyond its tokens, and derives its merges.
func (f *File) scored(v *Vocabulary) error {
	ids := make(map[string]int, len(v.Tokens))
	for id, text := range v.Tokens {
		ids[text] = id
	}
	for b := range 256 {
		if _, ok := ids[ByteToken(byte(b))]; !ok {
			return f.unsupported("tokenizer %q is not supported without a token for every byte; %s is missing",
				modelSentencePiece, ByteToken(byte(b)))
		}
	}
	const key = "tokenizer.ggml.scores"
	value, _ := f.Lookup(key)
	scores, ok := value.([]float32)
	if !ok || len(scores) != len(v.Tokens) {
		return f.want(key, "an array of float32, one for each token,")
	}
	for id, s := range scores {
		if math.IsNaN(float64(s)) {
			return f.bad(again, "the score of token %d in %s is not a number", id, key)
		}
	}
	v.Scores = scores
	joins := v.joins(ids)
	for i := 1; i < len(joins); i++ {
		a, b := v.Tokens[joins[i-1].token], v.Tokens[joins[i].token]
		if a != b && scores[joins[i-1].token] == scores[joins[i].token] && strings.Trim(a+b, Space) != "" {
			return f.unsupported("tokens %q and %q have the same score: which one is made depends on where it would stand, "+
				"which merges can't say", a, b)
		}
	}
	for _, j := range joins {
		v.Merges = append(v.Merges, v.Tokens[j.token][:j.cut]+" "+v.Tokens[j.token][j.cut:])
	}
	return nil
}

// join is a way to make a token out of two others.
type join struct{ token, cut int }

// joins are the ways to make normal tokens out of normal tokens, the highest score first. Among equal scores the
// leftmost join is to be made first. Merges can't say that, but where all the tokens are runs of spaces, as in the
// vocabularies that have equal scores at all, it is the same to prefer the join with the longest left part, then that
// with the longest right part: a run grows from its left end until there is no longer token.
func (v Vocabulary) joins(ids map[string]int) []join {
	normal := func(text string) bool {
		id, ok := ids[text]
		return ok && v.Types[id] == TokenNormal
	}
	var list []join
	for id, text := range v.Tokens {
		// no text has a space once it is spelt with Space
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
	sort.SliceStable(list, func(i, j int) bool {
		a, b := list[i], list[j]
		x, y := v.Tokens[a.token], v.Tokens[b.token]
		switch {
		case v.Scores[a.token] != v.Scores[b.token]:
			return v.Scores[a.token] > v.Scores[b.token]
		case a.cut != b.cut:
			return length(x[:a.cut]) > length(y[:b.cut])
		}
		return length(x[a.cut:]) > length(y[b.cut:])
	})
	return list
}
