package main

import (
	"strings"
	"unicode/utf8"

	"llmparity/internal/models/tokenizer"
)

// words returns the text that each token adds.
type words struct {
	tokenizer *tokenizer.Tokenizer
	recent    []int // the last tokens, because a token's text depends on those before it
	said      int   // returned bytes of their text
}

// enough previous tokens are decoded with each; decoding all would take longer and longer.
const enough = 8

// add returns the text that a token adds. Incomplete characters wait for the next token, if there is one.
func (w *words) add(id int, last bool) string {
	w.recent = append(w.recent, id)
	text := w.tokenizer.Decode(w.recent)
	whole := len(text)
	if !last {
		whole = max(w.said, wholeCharacters(text))
	}
	reported := text[w.said:whole]
	w.said = whole
	if one := w.tokenizer.Decode([]int{id}); whole == len(text) && len(w.recent) > enough &&
		!strings.ContainsRune(one, utf8.RuneError) {
		w.recent, w.said = append(w.recent[:0], id), len(one)
	}
	return reported
}

// wholeCharacters returns the length of text without an incomplete character at its end, whose bytes may be
// replacement characters already: JSON has only complete characters.
func wholeCharacters(text string) int {
	text = strings.TrimRight(text, string(utf8.RuneError))
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if tail := text[len(text)-back:]; utf8.RuneStart(tail[0]) && !utf8.FullRuneInString(tail) {
			return len(text) - back
		}
	}
	return len(text)
}
