// Package tokenizer converts text to tokens as engines do, by byte-level BPE or SentencePiece. It favours readability
// over speed.
package tokenizer

import (
	"sort"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"llmparity/internal/models/gguf"
)

// Tokenizer is a vocabulary prepared for lookups.
type Tokenizer struct {
	gguf.Vocabulary
	ids     map[string]int
	ranks   map[string]int // "left right" to its merge's rank
	special []string       // matched before anything else, longest first
	bytes   map[string]byte
}

// Open reads the vocabulary of a GGUF.
func Open(path string) (*Tokenizer, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v, err := f.Vocabulary()
	if err != nil {
		return nil, err
	}
	return New(v), nil
}

// New prepares a vocabulary.
func New(v gguf.Vocabulary) *Tokenizer {
	t := &Tokenizer{Vocabulary: v, ids: map[string]int{}, ranks: map[string]int{}, bytes: map[string]byte{}}
	for id, text := range v.Tokens {
		t.ids[text] = id
		if v.Verbatim(id) {
			t.special = append(t.special, text)
		}
	}
	sort.Slice(t.special, func(a, b int) bool { return len(t.special[a]) > len(t.special[b]) })
	for rank, m := range v.Merges {
		t.ranks[m] = rank
	}
	for b := range 256 {
		if v.Kind == gguf.SentencePiece {
			t.bytes[gguf.ByteToken(byte(b))] = byte(b)
		} else {
			t.bytes[string(gguf.ByteRune(byte(b)))] = byte(b)
		}
	}
	return t
}

// Prompt returns the tokens of a raw prompt, after BOS if the model uses it.
func (t *Tokenizer) Prompt(text string) []int {
	ids := t.Encode(text)
	if t.AddBOS {
		ids = append([]int{t.BOS}, ids...)
	}
	return ids
}

// Encode returns the tokens of a text. Special tokens written in the text become themselves. Bytes that a byte-level
// vocabulary lacks are dropped, as engines do; gguf.Vocabulary.Uncovered finds them.
func (t *Tokenizer) Encode(text string) []int {
	var ids []int
	for text != "" {
		at, found := len(text), ""
		for _, s := range t.special {
			if i := strings.Index(text, s); i >= 0 && i < at {
				at, found = i, s
			}
		}
		if at > 0 {
			ids = append(ids, t.plain(text[:at])...)
		}
		if found != "" {
			ids = append(ids, t.ids[found])
		}
		text = text[at+len(found):]
		if found != "" && t.Trims(t.ids[found]) {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
	}
	return ids
}

// plain returns the tokens of text without special tokens.
func (t *Tokenizer) plain(text string) []int {
	if t.Kind == gguf.SentencePiece {
		return t.pieces(text)
	}
	if t.Composes() {
		text = norm.NFC.String(text)
	}
	var ids []int
	for _, word := range Words(text, t.Pre) {
		ids = append(ids, t.word(gguf.ByteLevel(word))...)
	}
	return ids
}

// word merges the characters of a word by rank.
func (t *Tokenizer) word(word string) []int {
	if id, ok := t.ids[word]; ok && t.WholeWords() {
		return []int{id}
	}
	var ids []int
	for _, p := range merge(word, func(left, right string) (float64, bool) {
		rank, ok := t.ranks[left+" "+right]
		return -float64(rank), ok
	}) {
		if id, ok := t.ids[p]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// Decode returns the text of tokens, with special tokens written out. It inverts Encode except for bytes that the
// vocabulary lacks, text that was normalised and, for SentencePiece, special tokens and gguf.Space.
func (t *Tokenizer) Decode(ids []int) string {
	if t.Kind == gguf.SentencePiece {
		return t.join(ids)
	}
	var text []byte
	for _, id := range ids {
		if t.Verbatim(id) {
			text = append(text, t.Tokens[id]...)
			continue
		}
		for _, r := range t.Tokens[id] {
			if b, ok := t.bytes[string(r)]; ok {
				text = append(text, b)
			} else {
				text = append(text, string(r)...)
			}
		}
	}
	return string(text)
}
