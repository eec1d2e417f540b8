package reference

import (
	"sort"
	"strings"
	"unicode/utf8"

	"llmparity/internal/gguf"
)

// Tokenizer is a byte-level BPE tokenizer.
type Tokenizer struct {
	tokens  []string
	types   []int32
	ids     map[string]int
	ranks   map[string]int // "left right" to its merge's rank
	special []string       // found in the text before anything else, longest first
	digits  bool           // each digit is a word of its own
	bytes   map[rune]byte
}

// NewTokenizer makes a tokenizer from a vocabulary.
func NewTokenizer(v gguf.Vocabulary) *Tokenizer {
	t := &Tokenizer{tokens: v.Tokens, types: v.Types, ids: map[string]int{}, ranks: map[string]int{},
		digits: v.Pre == gguf.PreSmolLM, bytes: map[rune]byte{}}
	for id, text := range v.Tokens {
		t.ids[text] = id
		if t.verbatim(id) {
			t.special = append(t.special, text)
		}
	}
	sort.Slice(t.special, func(a, b int) bool { return len(t.special[a]) > len(t.special[b]) })
	for rank, m := range v.Merges {
		t.ranks[m] = rank
	}
	for b := range 256 {
		t.bytes[gguf.ByteRune(byte(b))] = byte(b)
	}
	return t
}

// verbatim says whether a token stands in texts as it is written, outside BPE.
func (t *Tokenizer) verbatim(id int) bool {
	return t.types[id] == gguf.TokenControl || t.types[id] == gguf.TokenUserDefined
}

// Encode gives a text's tokens. Special tokens written out in the text become themselves. Bytes that the vocabulary
// lacks are left out, as engines do; gguf.Uncovered finds them.
func (t *Tokenizer) Encode(text string) []int {
	var ids []int
	for text != "" {
		at, found := len(text), ""
		for _, s := range t.special {
			if i := strings.Index(text, s); i >= 0 && i < at {
				at, found = i, s
			}
		}
		for _, word := range Split(text[:at], t.digits) {
			ids = append(ids, t.word(gguf.ByteLevel(word))...)
		}
		if found != "" {
			ids = append(ids, t.ids[found])
		}
		text = text[at+len(found):]
	}
	return ids
}

// word merges the characters of a word, the earliest merge first, until none applies.
func (t *Tokenizer) word(word string) []int {
	parts := strings.Split(word, "")
	for {
		best, at := len(t.ranks), -1
		for i := 0; i+1 < len(parts); i++ {
			if rank, ok := t.ranks[parts[i]+" "+parts[i+1]]; ok && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
	var ids []int
	for _, p := range parts {
		if id, ok := t.ids[p]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// Decode gives the text of tokens, special ones written out.
func (t *Tokenizer) Decode(ids []int) string {
	var text []byte
	for _, id := range ids {
		if t.verbatim(id) {
			text = append(text, t.tokens[id]...)
			continue
		}
		for _, r := range t.tokens[id] {
			if b, ok := t.bytes[r]; ok {
				text = append(text, b)
			} else {
				text = utf8.AppendRune(text, r)
			}
		}
	}
	return string(text)
}
