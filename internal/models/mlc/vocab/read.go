package vocab

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"llmparity/internal/kit/regular"
	"llmparity/internal/models/gguf"
)

const (
	maxFile   = 256 << 20
	maxConfig = 16 << 20
	bpe       = "BPE"
)

// Read reads the tokenizer and the chat template of a package with so many rows in its embedding, as a GGUF has them.
func Read(dir string, rows int, l Limits) (entries []gguf.Entry, v gguf.Vocabulary, err error) {
	t := File{Normalizer: new(step), PreTokenizer: new(step)}
	if err := regular.JSON(filepath.Join(dir, Name), maxFile, &t); err != nil && cmp.Or(t.Model.Type, bpe) == bpe {
		return nil, v, err // other types have other fields
	}
	var c struct {
		Template any     `json:"chat_template"`
		EOS      content `json:"eos_token"`
	}
	if err := regular.JSON(filepath.Join(dir, "tokenizer_config.json"), maxConfig, &c); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return nil, v, err
	}
	if entries, err = t.entries(rows, l, string(c.EOS)); err != nil {
		return nil, v, err
	}
	f, err := gguf.Sketch(Name, entries, nil)
	if err != nil {
		return nil, v, err
	}
	if v, err = f.Vocabulary(); err == nil && v.Kind == gguf.SentencePiece {
		err = t.sameMerges(v)
	}
	v.Phi3 = slices.ContainsFunc(t.AddedTokens, func(a added) bool { return a.RStrip })
	if text, ok := c.Template.(string); ok && err == nil {
		entries = append(entries, gguf.Entry{Key: "tokenizer.chat_template", Value: text})
	}
	return entries, v, err
}

// Limits are the tokens at the ends of texts, from mlc-chat-config.json.
type Limits struct {
	BOS    some  `json:"bos_token_id"`
	EOS    some  `json:"eos_token_id"`
	Prefix []int `json:"prompt_prefix_token_ids"` // before a raw prompt
}

// content is the text of a token, or an object with it.
type content string

// UnmarshalJSON accepts both forms, and null.
func (c *content) UnmarshalJSON(text []byte) error {
	var token struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(text, (*string)(c)) == nil {
		return nil
	}
	err := json.Unmarshal(text, &token)
	*c = content(token.Content)
	return err
}

// some is a number or a list of numbers.
type some []int

// UnmarshalJSON accepts both forms, and null.
func (s *some) UnmarshalJSON(text []byte) error {
	var one int
	if json.Unmarshal(text, &one) != nil {
		return json.Unmarshal(text, (*[]int)(s))
	}
	*s = nil
	if string(text) != "null" {
		*s = some{one}
	}
	return nil
}

// entries returns the tokenizer of a model whose embedding has so many rows, as a GGUF describes it. eos is the text of
// the EOS token in tokenizer_config.json, for models with several.
func (t File) entries(rows int, l Limits, eos string) (out []gguf.Entry, err error) {
	m, empty := t.Model, []any{nil, ""}
	switch {
	case m.Type != bpe || m.Dropout != nil || !slices.Contains(empty, m.Prefix) || !slices.Contains(empty, m.Suffix):
		return nil, fmt.Errorf("a tokenizer of type %q, or with dropout, prefixes or suffixes, is not supported", m.Type)
	case len(m.Vocab) == 0:
		return nil, errors.New("vocab is missing")
	}
	tokens, types, err := t.tokens(rows)
	if err != nil {
		return nil, err
	}
	key := func(name string, value any) {
		out = append(out, gguf.Entry{Key: "tokenizer.ggml." + name, Value: value})
	}
	if m.ByteFallback {
		prefix, err := t.spaces()
		if err != nil {
			return nil, err
		}
		key("model", "llama")
		key("add_space_prefix", prefix)
		key("scores", t.scores(tokens))
		if id := slices.Index(types, gguf.TokenUnknown); id >= 0 {
			key("unknown_token_id", uint32(id))
		}
	} else {
		pre, err := recognise(steps(t.Normalizer), steps(t.PreTokenizer), m.IgnoreMerges)
		if err != nil {
			return nil, err
		}
		key("model", "gpt2")
		key("pre", pre)
		key("merges", []string(m.Merges))
	}
	key("tokens", tokens)
	key("token_type", types)
	// Raw prompts start as WebLLM's do, whatever the post-processor says.
	if n := len(l.Prefix); n > 1 || n == 1 && (len(l.BOS) == 0 || l.Prefix[0] != l.BOS[0]) {
		return nil, errors.New("its raw prompts start with other tokens than BOS")
	}
	if len(l.BOS) > 0 {
		key("bos_token_id", uint32(l.BOS[0]))
	}
	key("add_bos_token", len(l.Prefix) == 1)
	if id := slices.Index(tokens, eos); slices.Contains(l.EOS, id) {
		key("eos_token_id", uint32(id))
	} else if len(l.EOS) > 0 {
		key("eos_token_id", uint32(l.EOS[0]))
	}
	return out, nil
}

// tokens returns the texts and types of the tokens. Rows of the embedding without a token get a text that never occurs.
func (t File) tokens(rows int) (tokens []string, types []int32, err error) {
	tokens, types = make([]string, rows), slices.Repeat([]int32{gguf.TokenNormal}, rows)
	set := func(text string, id int, kind int32) error {
		if id < 0 || id >= rows || tokens[id] != "" && tokens[id] != text {
			return fmt.Errorf("token %q has the id %d, which is another token's or has no row in the embedding", text, id)
		}
		tokens[id], types[id] = text, kind
		return nil
	}
	for text, id := range t.Model.Vocab {
		kind := int32(gguf.TokenNormal)
		if t.Model.ByteFallback && isByte(text) {
			kind = gguf.TokenByte
		}
		if err := set(text, id, kind); err != nil {
			return nil, nil, err
		}
	}
	for _, a := range t.AddedTokens {
		kind := int32(gguf.TokenUserDefined)
		unknown, ok := t.Model.Unknown.(string)
		if !ok {
			unknown = "<unk>"
		}
		switch {
		case a.SingleWord || a.LStrip:
			return nil, nil, fmt.Errorf("token %q depends on the text before it, which is not supported", a.Content)
		case t.Model.ByteFallback && a.Content == unknown:
			kind = gguf.TokenUnknown
		case a.Special:
			kind = gguf.TokenControl
		}
		if err := set(a.Content, a.ID, kind); err != nil {
			return nil, nil, err
		}
	}
	for id, text := range tokens {
		if text == "" {
			tokens[id], types[id] = fmt.Sprintf("[PAD%d]", id), gguf.TokenUnused
		}
	}
	return tokens, types, nil
}

func isByte(text string) bool {
	var b byte
	_, err := fmt.Sscanf(text, "<0x%02X>", &b)
	return err == nil && text == gguf.ByteToken(b)
}

// spaces reads how a tokenizer with scores writes spaces, and whether it puts one before a text.
func (t File) spaces() (prefix bool, err error) {
	steps, pre := steps(t.Normalizer), steps(t.PreTokenizer)
	if len(steps) == 2 && steps[0].Type == "Prepend" && steps[0].Prepend == gguf.Space {
		prefix, steps = true, steps[1:]
	}
	isSpace := func(s step) bool { return s.Pattern.String != nil && *s.Pattern.String == " " }
	if len(steps) != 1 || steps[0].Type != "Replace" || !isSpace(steps[0]) || steps[0].Content != gguf.Space {
		return prefix, fmt.Errorf("a tokenizer with byte_fallback must replace spaces by %s, and change nothing else",
			gguf.Space)
	}
	for _, s := range pre {
		if s.Type != "Split" || !isSpace(s) { // after the replacement there are no spaces
			return prefix, fmt.Errorf("pre_tokenizer %s is not supported after a normalizer", s.Type)
		}
	}
	return prefix, nil
}

// made returns the token that a merge makes.
func made(merge string) string { return strings.Replace(merge, " ", "", 1) }

// scores returns scores that give the merges their order. Tokens whose merges are interleaved get the same score.
func (t File) scores(tokens []string) []float32 {
	last := map[string]int{}
	for i, m := range t.Model.Merges {
		last[made(m)] = i
	}
	scores, of, end := make([]float32, len(tokens)), map[string]float32{}, -1
	score := float32(0)
	for i, m := range t.Model.Merges {
		if i > end {
			score--
		}
		end = max(end, last[made(m)])
		of[made(m)] = score
	}
	for id, text := range tokens {
		if s, joined := of[text]; joined {
			scores[id] = s
		} else {
			scores[id] = score - 1 // never joined
		}
	}
	return scores
}

// sameMerges reports whether scores give the merges of the file: the same, and their tokens in the same order. Of two
// ways to make a token neither comes first, because SentencePiece joins the leftmost pair.
func (t File) sameMerges(v gguf.Vocabulary) error {
	sort := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	if !slices.EqualFunc(t.Model.Merges, v.Merges, func(a, b string) bool { return made(a) == made(b) }) ||
		!slices.Equal(sort(t.Model.Merges), sort(v.Merges)) {
		return errors.New("its merges do not follow from scores, as SentencePiece needs them")
	}
	return nil
}
