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
	TokenByte        = 6
)

// TokenizerKind says by which rules a vocabulary's tokens are found in a text.
type TokenizerKind int

const (
	// ByteLevelBPE cuts text into words and joins their bytes by ranked merges. A token's text is byte-level: each byte
	// stands as the character that ByteRune gives.
	ByteLevelBPE TokenizerKind = iota
	// SentencePiece joins the characters of the whole text, the join of the highest score first. Space stands for a
	// space, and what no token expresses becomes the tokens of its bytes.
	SentencePiece
)

// The tokenizers' names in tokenizer.ggml.model.
const (
	modelBPE           = "gpt2"
	modelSentencePiece = "llama"
)

// maxToken is far more bytes than any token of a real vocabulary has.
const maxToken = 1 << 12

// Vocabulary is a tokenizer's data. Control, unknown and user-defined tokens stand in Tokens as they stand in texts.
type Vocabulary struct {
	Kind   TokenizerKind
	Tokens []string
	Types  []int32   // one a token
	Scores []float32 // one a token, in a SentencePiece vocabulary
	// "left right", in the order of their rank; a SentencePiece vocabulary's follow from its scores
	Merges       []string
	Pre          string // a byte-level vocabulary's pre-tokenizer: PreGPT2 and so on
	BOS, EOS     int    // -1 where there is none
	AddBOS       bool   // a prompt begins with BOS
	SpacePrefix  bool   // a space is put before each text, in a SentencePiece vocabulary
	ChatTemplate string // Jinja; empty where there is none
}

// Vocabulary reads the tokenizer. One that isn't supported is a fault of kind UnknownArch.
func (f *File) Vocabulary() (Vocabulary, error) {
	v := Vocabulary{BOS: -1, EOS: -1}
	model, err := f.Text("tokenizer.ggml.model")
	if err != nil {
		return v, err
	}
	if model != modelBPE && model != modelSentencePiece {
		return v, f.unsupported("tokenizer %q is not supported; supported: %s, %s", model, modelBPE, modelSentencePiece)
	}
	if v.Tokens, err = f.Texts("tokenizer.ggml.tokens"); err != nil {
		return v, err
	}
	for id, t := range v.Tokens { // before work is done that grows with the square of it
		if len(t) > maxToken {
			return v, f.bad(again, "token %d of tokenizer.ggml.tokens has %d bytes; up to %d are right", id, len(t),
				maxToken)
		}
	}
	if err := f.tokenTypes(&v); err != nil {
		return v, err
	}
	if model == modelBPE {
		err = f.ranked(&v)
	} else {
		v.Kind, v.AddBOS, v.SpacePrefix = SentencePiece, true, f.flag("add_space_prefix", true)
		v.BOS, v.EOS = 1, 2 // SentencePiece's own, where the file says nothing
		err = f.scored(&v)
	}
	if err != nil {
		return v, err
	}
	if err := f.ends(&v); err != nil {
		return v, err
	}
	template, _ := f.Lookup("tokenizer.chat_template")
	v.ChatTemplate, _ = template.(string)
	return v, f.consistent(v)
}

// flag reads a setting that is on or off.
func (f *File) flag(name string, otherwise bool) bool {
	value, _ := f.Lookup("tokenizer.ggml." + name)
	if on, ok := value.(bool); ok {
		return on
	}
	return otherwise
}

// ranked reads what a byte-level vocabulary has beyond its tokens.
func (f *File) ranked(v *Vocabulary) error {
	name, err := f.Text("tokenizer.ggml.pre")
	if err != nil {
		return err
	}
	var ok bool
	if v.Pre, ok = preTokenizer(name); !ok {
		return f.unsupported("pre-tokenizer %q is not supported; supported: %s, %s, %s, %s", name,
			PreGPT2, PreSmolLM, PreLlama3, PreQwen2)
	}
	v.AddBOS = v.Pre == PreLlama3 // where the file says nothing
	v.Merges, err = f.Texts("tokenizer.ggml.merges")
	return err
}

// ends reads the tokens that begin and end a text, and refuses what the package of a model can't express.
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
			return f.bad(again, "metadata %s is %d; the vocabulary has %d tokens", key, id, len(v.Tokens))
		}
		*to = int(id)
	}
	v.AddBOS = f.flag("add_bos_token", v.AddBOS)
	if v.AddBOS && v.BOS < 0 {
		return f.bad(again, "prompts are to begin with a BOS token, and metadata tokenizer.ggml.bos_token_id is missing")
	}
	for _, name := range []string{"add_eos_token", "remove_extra_whitespaces"} {
		if f.flag(name, false) {
			return f.unsupported("tokenizer.ggml.%s is true; false is supported", name)
		}
	}
	if _, there := f.Lookup("tokenizer.ggml.precompiled_charsmap"); there {
		return f.unsupported("the tokenizer's own normalisation, tokenizer.ggml.precompiled_charsmap, is not supported")
	}
	return nil
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
	ranks := make(map[string]int, len(v.Merges))
	for rank, m := range v.Merges {
		// of which some engines take the first rank, others the last
		if first, twice := ranks[m]; twice && v.Kind == ByteLevelBPE {
			return f.bad(again, "merges %d and %d of tokenizer.ggml.merges are both %q", first, rank, m)
		}
		ranks[m] = rank
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

// Verbatim says whether a token stands in texts as it is written, outside merging.
func (v Vocabulary) Verbatim(id int) bool {
	t := v.Types[id]
	return t == TokenControl || t == TokenUserDefined || t == TokenUnknown
}

// Uncovered finds the first character of a prompt that the vocabulary can't express: an engine would drop it silently.
func (v Vocabulary) Uncovered(prompt string) (rune, bool) {
	var covered [256]bool
	ids := make(map[string]bool, len(v.Tokens))
	for _, t := range v.Tokens {
		ids[t] = true
	}
	for b := range covered {
		covered[b] = v.Kind == SentencePiece || ids[string(byteRunes[b])] // SentencePiece falls back to bytes
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

// PromptFault is the one line for a prompt that the vocabulary can't express; nil where it can, or where the vocabulary
// can't be read.
func PromptFault(f *File, prompt string) error {
	v, err := f.Vocabulary()
	if err != nil {
		return nil
	}
	if r, ok := v.Uncovered(prompt); ok {
		return fault.New(fault.Usage, "leave it out or choose another model",
			"the prompt has %q, which the vocabulary of %s can't express", r, f.Name)
	}
	return nil
}
