package tokenizer

import (
	"strings"
	"unicode/utf8"

	"llmparity/internal/models/gguf"
)

// pieces returns a text's tokens by SentencePiece's algorithm.
func (t *Tokenizer) pieces(text string) []int {
	if t.SpacePrefix {
		text = " " + text
	}
	var ids []int
	for _, p := range merge(strings.ReplaceAll(text, " ", gguf.Space), func(left, right string) (float64, bool) {
		id, ok := t.normal(left + right)
		if !ok {
			return 0, false
		}
		return float64(t.Scores[id]), true
	}) {
		if id, ok := t.normal(p); ok {
			ids = append(ids, id)
			continue
		}
		for _, b := range []byte(p) {
			ids = append(ids, t.ids[gguf.ByteToken(b)])
		}
	}
	return ids
}

// normal finds a normal token. Byte tokens such as "<0x0A>" are excluded: written out, they are plain text.
func (t *Tokenizer) normal(text string) (int, bool) {
	id, ok := t.ids[text]
	return id, ok && t.Types[id] == gguf.TokenNormal
}

// join returns the text of tokens. Byte tokens that are not valid UTF-8 together become one U+FFFD each, as in the
// tokenizers library.
func (t *Tokenizer) join(ids []int) string {
	var text strings.Builder
	var bytes []byte
	flush := func() {
		if utf8.Valid(bytes) {
			text.Write(bytes)
		} else {
			text.WriteString(strings.Repeat(string(utf8.RuneError), len(bytes)))
		}
		bytes = nil
	}
	for _, id := range ids {
		if b, ok := t.bytes[t.Tokens[id]]; ok {
			bytes = append(bytes, b)
			continue
		}
		flush()
		text.WriteString(strings.ReplaceAll(t.Tokens[id], gguf.Space, " "))
	}
	flush()
	if t.SpacePrefix {
		return strings.TrimPrefix(text.String(), " ")
	}
	return text.String()
}
