package gguf

import (
	"slices"
	"strings"
	"unicode/utf8"

	"llmparity/internal/kit/fault"
)

// Token types, as tokenizer.ggml.token_type has them.
const (
	TokenNormal      = 1
	TokenUnknown     = 2
	TokenControl     = 3
	TokenUserDefined = 4
	TokenUnused      = 5
	TokenByte        = 6
)

// TokenizerKind is the algorithm that finds the tokens of a text.
type TokenizerKind int

const (
	// ByteLevelBPE cuts text into words and merges their bytes by rank. Token texts are byte-level: ByteRune maps each
	// byte to a character.
	ByteLevelBPE TokenizerKind = iota
	// SentencePiece merges the characters of the whole text, highest score first. Space stands for a space. What no
	// token covers becomes the tokens of its bytes.
	SentencePiece
)

// The names of the tokenizers in tokenizer.ggml.model.
const (
	modelBPE           = "gpt2"
	modelSentencePiece = "llama"
)

// maxToken is more bytes than any real token has.
const maxToken = 1 << 12

// Vocabulary is the data of a tokenizer. Control, unknown and user-defined tokens appear in Tokens as in texts.
type Vocabulary struct {
	Kind         TokenizerKind
	Tokens       []string
	Types        []int32   // one per token
	Scores       []float32 // SentencePiece: one per token
	Merges       []string  // "left right", by rank; SentencePiece: derived from the scores
	Pre          string    // byte-level: the pre-tokenizer, such as PreGPT2
	BOS, EOS     int       // -1: none
	AddBOS       bool      // prompts start with BOS
	SpacePrefix  bool      // SentencePiece: texts get a leading space
	ChatTemplate string    // Jinja; "": none
	Phi3         bool      // special tokens take the white space after them, with some exceptions
}

// Vocabulary reads the tokenizer. An unsupported one is a fault of kind UnknownArch.
func (f *File) Vocabulary() (Vocabulary, error) {
	v := Vocabulary{BOS: -1, EOS: -1}
	model, err := f.Text("tokenizer.ggml.model")
	if err != nil {
		return v, err
	}
	if model != modelBPE && model != modelSentencePiece {
		return v, f.untokenized("tokenizer %q is not supported; supported: %s, %s", model, modelBPE, modelSentencePiece)
	}
	if v.Tokens, err = f.Texts("tokenizer.ggml.tokens"); err != nil {
		return v, err
	}
	for id, t := range v.Tokens { // before work that is quadratic in the length
		if len(t) > maxToken {
			return v, f.bad(again, "token %d of tokenizer.ggml.tokens has %d bytes, the limit is %d", id, len(t), maxToken)
		}
	}
	if err := f.tokenTypes(&v); err != nil {
		return v, err
	}
	if model == modelBPE {
		err = f.ranked(&v)
	} else {
		v.Kind, v.AddBOS, v.SpacePrefix = SentencePiece, true, f.flag("add_space_prefix", true)
		v.BOS, v.EOS = 1, 2 // SentencePiece's defaults
		err = f.scored(&v)
	}
	if err != nil {
		return v, err
	}
	if err := f.ends(&v); err != nil {
		return v, err
	}
	v.ChatTemplate, _ = f.Text("tokenizer.chat_template")
	name, _ := f.Text("general.name")
	name = strings.ToLower(name)
	v.Phi3 = strings.Contains(name, "phi-3") || strings.Contains(name, "phi3") // as in llama.cpp: the file has no flag
	return v, f.consistent(v)
}

// untokenized returns an error about a tokenizer that cannot be used.
func (f *File) untokenized(format string, args ...any) error {
	return f.fault(fault.UnknownArch, "choose a model with another tokenizer", format, args)
}

// flag reads a boolean with a default.
func (f *File) flag(name string, otherwise bool) bool {
	value, _ := f.Lookup("tokenizer.ggml." + name)
	if on, ok := value.(bool); ok {
		return on
	}
	return otherwise
}

// ranked reads the rest of a byte-level vocabulary.
func (f *File) ranked(v *Vocabulary) error {
	name, err := f.Text("tokenizer.ggml.pre")
	if err != nil {
		return err
	}
	if v.Pre = preTokenizers[name]; v.Pre == "" {
		return f.untokenized("pre-tokenizer %q is not supported; supported: %s", name, strings.Join(PreTokenizers(), ", "))
	}
	v.AddBOS = v.Pre == PreLlama3 // default
	v.Merges, err = f.Texts("tokenizer.ggml.merges")
	return err
}

// ends reads the first and last token of texts, and refuses settings that WebLLM's packages cannot express.
func (f *File) ends(v *Vocabulary) error {
	for key, to := range map[string]*int{"bos": &v.BOS, "eos": &v.EOS} {
		key = "tokenizer.ggml." + key + "_token_id"
		if _, ok := f.Lookup(key); !ok {
			continue
		}
		id, err := f.Uint(key)
		if err != nil {
			return err
		}
		if id >= uint64(len(v.Tokens)) {
			return f.bad(again, "metadata %s is %d, but there are %d tokens", key, id, len(v.Tokens))
		}
		*to = int(id)
	}
	v.AddBOS = f.flag("add_bos_token", v.AddBOS)
	if v.AddBOS && v.BOS < 0 {
		return f.bad(again, "prompts start with a BOS token, but metadata tokenizer.ggml.bos_token_id is missing")
	}
	for _, name := range []string{"add_eos_token", "remove_extra_whitespaces"} {
		if f.flag(name, false) {
			return f.untokenized("tokenizer.ggml.%s is true, which is not supported", name)
		}
	}
	if _, there := f.Lookup("tokenizer.ggml.precompiled_charsmap"); there {
		return f.untokenized("text normalisation by tokenizer.ggml.precompiled_charsmap is not supported")
	}
	return nil
}

func (f *File) tokenTypes(v *Vocabulary) error {
	const key = "tokenizer.ggml.token_type"
	value, ok := f.Lookup(key)
	if !ok {
		v.Types = slices.Repeat([]int32{TokenNormal}, len(v.Tokens))
		return nil
	}
	if v.Types, ok = value.([]int32); !ok || len(v.Types) != len(v.Tokens) {
		return f.want(key, "an array of int32, one per token")
	}
	return nil
}

// consistent checks that tokens are unique and that merges join tokens into tokens.
func (f *File) consistent(v Vocabulary) error {
	ids := make(map[string]int, len(v.Tokens))
	for id, t := range v.Tokens {
		if t == "" || !utf8.ValidString(t) {
			return f.bad(again, "token %d of tokenizer.ggml.tokens is %q, want non-empty UTF-8", id, t)
		}
		if first, twice := ids[t]; twice {
			return f.bad(again, "tokens %d and %d of tokenizer.ggml.tokens are both %q", first, id, t)
		}
		ids[t] = id
	}
	ranks := make(map[string]int, len(v.Merges))
	for rank, m := range v.Merges {
		// Engines disagree on whether the first or the last rank counts.
		if first, twice := ranks[m]; twice && v.Kind == ByteLevelBPE {
			return f.bad(again, "merges %d and %d of tokenizer.ggml.merges are both %q", first, rank, m)
		}
		ranks[m] = rank
		left, right, ok := strings.Cut(m, " ")
		if !ok {
			return f.bad(again, "merge %d of tokenizer.ggml.merges is %q, want two tokens and a space", rank, m)
		}
		for _, part := range []string{left, right, left + right} {
			if _, ok := ids[part]; !ok {
				return f.bad(again, "merge %d of tokenizer.ggml.merges is %q, but %q is not a token", rank, m, part)
			}
		}
	}
	return nil
}

// ByteRune returns the character for a byte in byte-level vocabularies: itself if it is printable Latin-1, otherwise
// one from U+0100 on.
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

// ByteLevel converts text to the characters of a byte-level vocabulary.
func ByteLevel(text string) string {
	var s strings.Builder
	for i := range len(text) {
		s.WriteRune(byteRunes[text[i]])
	}
	return s.String()
}

// Verbatim reports whether a token appears in texts as it is written, outside merging.
func (v Vocabulary) Verbatim(id int) bool {
	t := v.Types[id]
	return t == TokenControl || t == TokenUserDefined || t == TokenUnknown
}

// Trims reports whether the white space after a token in a text belongs to it.
func (v Vocabulary) Trims(id int) bool {
	return v.Phi3 && v.Verbatim(id) && !slices.Contains([]string{"<unk>", "<s>", "<|endoftext|>"}, v.Tokens[id])
}

// Uncovered returns the first character that the vocabulary cannot express. Engines drop such characters silently.
func (v Vocabulary) Uncovered(prompt string) (rune, bool) {
	var covered [256]bool
	ids := make(map[string]bool, len(v.Tokens))
	for _, t := range v.Tokens {
		ids[t] = true
	}
	for b := range covered {
		covered[b] = v.Kind == SentencePiece || ids[string(byteRunes[b])] // SentencePiece has a token for each byte
	}
	for i, r := range prompt {
		_, n := utf8.DecodeRuneInString(prompt[i:]) // an invalid byte has length 1, unlike r
		for _, b := range []byte(prompt[i : i+n]) {
			if !covered[b] {
				return r, true
			}
		}
	}
	return 0, false
}
