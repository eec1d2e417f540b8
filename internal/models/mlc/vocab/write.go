// Package vocab writes and reads tokenizer.json, the file of the tokenizers library that WebLLM reads. It knows
// only BPE, without dropout, prefixes or suffixes.
package vocab

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tokenizer"
)

// Name is the file's name in a package.
const Name = "tokenizer.json"

// File is the content of tokenizer.json. In a file that was read, Normalizer and PreTokenizer are of type *step.
type File struct {
	Version       string      `json:"version"`
	Truncation    any         `json:"truncation"`
	Padding       any         `json:"padding"`
	AddedTokens   []added     `json:"added_tokens"`
	Normalizer    any         `json:"normalizer"`
	PreTokenizer  any         `json:"pre_tokenizer"`
	PostProcessor any         `json:"post_processor"`
	Decoder       any         `json:"decoder"`
	Model         mergesModel `json:"model"`
}

type added struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type byteLevel struct {
	Type      string `json:"type"`
	AddPrefix bool   `json:"add_prefix_space"`
	Trim      bool   `json:"trim_offsets"`
	UseRegex  bool   `json:"use_regex"`
}

type mergesModel struct {
	Type         string `json:"type"`
	Dropout      any    `json:"dropout"`
	Unknown      any    `json:"unk_token"`
	Prefix       any    `json:"continuing_subword_prefix"`
	Suffix       any    `json:"end_of_word_suffix"`
	FuseUnknown  bool   `json:"fuse_unk"`
	ByteFallback bool   `json:"byte_fallback"`
	IgnoreMerges bool   `json:"ignore_merges"`
	Vocab        ids    `json:"vocab"`
	Merges       merges `json:"merges"`
}

// ids are the numbers of tokens.
type ids map[string]int

// MarshalJSON sorts by number, so that the file is reproducible.
func (v ids) MarshalJSON() ([]byte, error) {
	type numbered struct {
		id   int
		text string
	}
	tokens := make([]numbered, 0, len(v))
	for text, id := range v {
		tokens = append(tokens, numbered{id, text})
	}
	slices.SortFunc(tokens, func(a, b numbered) int { return cmp.Compare(a.id, b.id) })
	var b []byte
	for _, t := range tokens {
		text, err := json.Marshal(t.text)
		if err != nil {
			return nil, err
		}
		b = fmt.Appendf(b, ",%s:%d", text, t.id)
	}
	return append(append([]byte("{"), bytes.TrimPrefix(b, []byte(","))...), '}'), nil
}

// merges are pairs of tokens, each one text with a space.
type merges []string

// UnmarshalJSON also accepts pairs as lists.
func (m *merges) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, (*[]string)(m)) == nil {
		return nil
	}
	var pairs [][2]string
	err := json.Unmarshal(text, &pairs)
	*m = nil
	for _, p := range pairs {
		*m = append(*m, p[0]+" "+p[1])
	}
	return err
}

// Of returns the file for a vocabulary.
func Of(v gguf.Vocabulary) File {
	t := File{
		Version: "1.0", AddedTokens: []added{},
		Model: mergesModel{Type: "BPE", Vocab: ids{}, Merges: v.Merges, IgnoreMerges: v.WholeWords()},
	}
	if v.Kind == gguf.SentencePiece {
		t.scored(v)
	} else {
		t.byteLevel(v)
	}
	// Special tokens must also be in the vocabulary, or the library assigns new ids.
	for id, text := range v.Tokens {
		t.Model.Vocab[text] = id
		if v.Verbatim(id) {
			special := v.Types[id] != gguf.TokenUserDefined
			t.AddedTokens = append(t.AddedTokens, added{ID: id, Content: text, RStrip: v.Trims(id), Special: special})
		}
	}
	return t
}

func split(regex string) map[string]any {
	return map[string]any{"type": "Split", "pattern": map[string]any{"Regex": regex}, "behavior": "Isolated",
		"invert": false}
}

func (t *File) byteLevel(v gguf.Vocabulary) {
	level := byteLevel{Type: "ByteLevel", Trim: true, UseRegex: true}
	plain := byteLevel{Type: "ByteLevel", Trim: true}
	t.Decoder = level
	t.PostProcessor = sequence("processors", level, startOf(v))
	switch v.Pre {
	case gguf.PreSmolLM:
		t.PreTokenizer = sequence("pretokenizers", map[string]any{"type": "Digits", "individual_digits": true}, level)
	case gguf.PreLlama3, gguf.PreDBRX:
		t.PreTokenizer = sequence("pretokenizers", split(tokenizer.Llama3), plain)
	case gguf.PreGPT4o:
		t.PreTokenizer = sequence("pretokenizers", split(tokenizer.GPT4o), plain)
	case gguf.PreQwen2:
		t.PreTokenizer = sequence("pretokenizers", split(tokenizer.Qwen2), plain)
	default:
		t.PreTokenizer = level
	}
	if v.Composes() {
		t.Normalizer = map[string]any{"type": "NFC"}
	}
}

// scored expresses a SentencePiece tokenizer as merges, without a pre-tokenizer: the whole text is one word.
func (t *File) scored(v gguf.Vocabulary) {
	t.Model.ByteFallback, t.Model.FuseUnknown = true, true
	spaces := replace(" ", gguf.Space)
	decoders := []any{replace(gguf.Space, " "), map[string]any{"type": "ByteFallback"}, map[string]any{"type": "Fuse"}}
	t.Normalizer = spaces
	if v.SpacePrefix {
		t.Normalizer = sequence("normalizers", map[string]any{"type": "Prepend", "prepend": gguf.Space}, spaces)
		decoders = append(decoders, map[string]any{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	}
	t.Decoder = sequence("decoders", decoders...)
	t.PostProcessor = startOf(v)
}

func replace(from, to string) map[string]any {
	return map[string]any{"type": "Replace", "pattern": map[string]any{"String": from}, "content": to}
}

// sequence combines steps, skipping nil; a single step is returned as it is.
func sequence(field string, steps ...any) any {
	var some []any
	for _, s := range steps {
		if s != nil {
			some = append(some, s)
		}
	}
	if len(some) == 1 {
		return some[0]
	}
	return map[string]any{"type": "Sequence", field: some}
}

// startOf adds BOS before a text if the model uses it, for callers that request special tokens. WebLLM does not: see
// prompt_prefix_token_ids.
func startOf(v gguf.Vocabulary) any {
	if !v.AddBOS {
		return nil
	}
	bos := v.Tokens[v.BOS]
	token := map[string]any{"SpecialToken": map[string]any{"id": bos, "type_id": 0}}
	text := func(id string, kind int) map[string]any {
		return map[string]any{"Sequence": map[string]any{"id": id, "type_id": kind}}
	}
	return map[string]any{
		"type": "TemplateProcessing", "single": []any{token, text("A", 0)},
		"pair":           []any{token, text("A", 0), text("B", 1)},
		"special_tokens": map[string]any{bos: map[string]any{"id": bos, "ids": []int{v.BOS}, "tokens": []string{bos}}},
	}
}
