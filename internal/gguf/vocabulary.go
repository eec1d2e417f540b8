package gguf

import (
	"strings"
	"unicode/utf8"

	"llmparity/internal/fault"
)

// Token types, as tokenizer.ggml.token_type has them.
const (
	TokenNormal      = 1
	TokenUnknown     = 2
	TokenControl     = 3
	TokenUserDefined = 4
	TokenUnused      = 5
)

// Vocabulary is a byte-level BPE tokenizer's data. A token's text is byte-level: each byte stands as the character that
// ByteRune gives; control and user-defined tokens stand as they are.
type Vocabulary struct {
	Tokens       []string
	Types        []int32  // one a token
	Merges       []string // "left right", in the order of their rank
	Pre          string   // the pre-tokenizer's name: PreGPT2 or PreSmolLM
	BOS, EOS     int      // -1 where there is none
	AddBOS       bool
	ChatTemplate string // Jinja; empty where there is none
}

// The pre-tokenizers that are supported: GPT-2's, and SmolLM's, which also splits every digit off.
const (
	PreGPT2   = "gpt-2"
	PreSmolLM = "smollm"
)

// Vocabulary reads the tokenizer. Another kind than byte-level BPE is a fault of kind UnknownArch.
func (f *File) Vocabulary() (Vocabulary, error) {
	v := Vocabulary{BOS: -1, EOS: -1}
	model, err := f.Text("tokenizer.ggml.model")
	if err != nil {
		return v, err
	}
	if model != "gpt2" {
		return v, f.unsupported("tokenizer %q is not supported; supported: gpt2", model)
	}
	if v.Pre, err = f.Text("tokenizer.ggml.pre"); err != nil {
		return v, err
	}
	if v.Pre != PreGPT2 && v.Pre != PreSmolLM {
		return v, f.unsupported("pre-tokenizer %q is not supported; supported: %s, %s", v.Pre, PreGPT2, PreSmolLM)
	}
	if v.Tokens, err = f.Texts("tokenizer.ggml.tokens"); err != nil {
		return v, err
	}
	if v.Merges, err = f.Texts("tokenizer.ggml.merges"); err != nil {
		return v, err
	}
	if err := f.tokenTypes(&v); err != nil {
		return v, err
	}
	for key, to := range map[string]*int{"bos": &v.BOS, "eos": &v.EOS} {
		key = "tokenizer.ggml." + key + "_token_id"
		if _, ok := f.Lookup(key); !ok {
			continue
		}
		id, err := f.Uint(key)
		if err != nil {
			return v, err
		}
		if id >= uint64(len(v.Tokens)) {
			return v, f.bad(again, "metadata %s is %d; the vocabulary has %d tokens", key, id, len(v.Tokens))
		}
		*to = int(id)
	}
	add, _ := f.Lookup("tokenizer.ggml.add_bos_token")
	v.AddBOS = add == true
	template, _ := f.Lookup("tokenizer.chat_template")
	v.ChatTemplate, _ = template.(string)
	return v, f.consistent(v)
}

func (f *File) tokenTypes(v *Vocabulary) error {
	const key = "tokenizer.ggml.token_type"
	value, ok := f.Lookup(key)
	if !ok {
		v.Types = make([]int32, len(v.Tokens))
		for i := range v.Types {
			v.Types[i] = TokenNormal
		}
		return nil
	}
	if v.Types, ok = value.([]int32); !ok || len(v.Types) != len(v.Tokens) {
		return f.want(key, "an array of int32, one for each token,")
	}
	return nil
}

// consistent checks that tokens are distinct and that merges join tokens into tokens.
func (f *File) consistent(v Vocabulary) error {
	ids := make(map[string]int, len(v.Tokens))
	for id, t := range v.Tokens {
		if t == "" || !utf8.ValidString(t) {
			return f.bad(again, "token %d of tokenizer.ggml.tokens is %q; text is needed", id, t)
		}
		if first, twice := ids[t]; twice {
			return f.bad(again, "tokens %d and %d of tokenizer.ggml.tokens are both %q", first, id, t)
		}
		ids[t] = id
	}
	for rank, m := range v.Merges {
		left, right, ok := strings.Cut(m, " ")
		if !ok {
			return f.bad(again, "merge %d of tokenizer.ggml.merges is %q; two tokens and a space are right", rank, m)
		}
		for _, part := range []string{left, right, left + right} {
			if _, ok := ids[part]; !ok {
				return f.bad(again, "merge %d of tokenizer.ggml.merges is %q; %q is no token", rank, m, part)
			}
		}
	}
	return nil
}

// ByteRune gives the character that stands for a byte in a byte-level vocabulary: itself where it is printable Latin-1,
// else one from U+0100 on.
func ByteRune(b byte) rune { return byteRunes[b] }

var byteRunes = func() (table [256]rune) {
	next := rune(0x100)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			table[b] = b
			continue
		}
		table[b] = next
		next++
	}
	return table
}()

// ByteLevel spells text in the characters of a byte-level vocabulary.
func ByteLevel(text string) string {
	var s strings.Builder
	for i := range len(text) {
		s.WriteRune(byteRunes[text[i]])
	}
	return s.String()
}

// Uncovered finds the first character of a prompt that the vocabulary can't express: an engine would drop it silently.
func (v Vocabulary) Uncovered(prompt string) (rune, bool) {
	var covered [256]bool
	ids := make(map[string]bool, len(v.Tokens))
	for _, t := range v.Tokens {
		ids[t] = true
	}
	for b := range covered {
		covered[b] = ids[string(byteRunes[b])]
	}
	for i, r := range prompt {
		_, n := utf8.DecodeRuneInString(prompt[i:]) // an invalid byte is one long, unlike r's own spelling
		for _, b := range []byte(prompt[i : i+n]) {
			if !covered[b] {
				return r, true
			}
		}
	}
	return 0, false
}

// Uncovered is Vocabulary.Uncovered for a file; one whose vocabulary can't be read has nothing to say here.
func Uncovered(f *File, prompt string) (rune, bool) {
	v, err := f.Vocabulary()
	if err != nil {
		return 0, false
	}
	return v.Uncovered(prompt)
}

// PromptFault is the one line for a prompt that the vocabulary can't express; nil where it can.
func PromptFault(f *File, prompt string) error {
	if r, ok := Uncovered(f, prompt); ok {
		return fault.New(fault.Usage, "leave it out or choose another model", "the prompt has %q, which the vocabulary of %s can't express",
			r, f.Name)
	}
	return nil
}
