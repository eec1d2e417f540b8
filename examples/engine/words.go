package main

import (
	"strings"
	"unicode/utf8"

	"llmparity/internal/tokenizer"
)

// words tells what each token adds to a text.
type words struct {
	tokenizer *tokenizer.Tokenizer
	recent    []int // the last tokens: what one is as text depends on those before it
	said      int   // bytes of their text that were told
}

// enough tokens are looked back at; all would take longer with every one.
const enough = 8

// add gives the text that a token adds: none while a character is not whole, unless it is the last.
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

// wholeCharacters is where a text ends that may break off inside a character, of which bytes may already stand for
// others: JSON has none that are not whole.
func wholeCharacters(text string) int {
	text = strings.TrimRight(text, string(utf8.RuneError))
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if tail := text[len(text)-back:]; utf8.RuneStart(tail[0]) && !utf8.FullRuneInString(tail) {
			return len(text) - back
		}
	}
	return len(text)
}
