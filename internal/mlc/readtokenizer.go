package mlc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"llmparity/internal/gguf"
)

// readable is tokenizer.json, ours or another's.
type readable struct {
	AddedTokens  []added `json:"added_tokens"`
	Normalizer   *step   `json:"normalizer"`
	PreTokenizer *step   `json:"pre_tokenizer"`
	Model        struct {
		Type         string          `json:"type"`
		Dropout      *float64        `json:"dropout"`
		Unknown      *string         `json:"unk_token"`
		Prefix       *string         `json:"continuing_subword_prefix"`
		Suffix       *string         `json:"end_of_word_suffix"`
		ByteFallback bool            `json:"byte_fallback"`
		IgnoreMerges bool            `json:"ignore_merges"`
		Vocab        json.RawMessage `json:"vocab"`
		Merges       []merge         `json:"merges"`
	} `json:"model"`
}

// merge is two tokens, as one text with a space or as a list.
type merge [2]string

// UnmarshalJSON accepts both forms.
func (m *merge) UnmarshalJSON(text []byte) error {
	var joined string
	if json.Unmarshal(text, &joined) != nil {
		return json.Unmarshal(text, (*[2]string)(m))
	}
	var ok bool
	if m[0], m[1], ok = strings.Cut(joined, " "); !ok {
		return fmt.Errorf("merge %q has no space", joined)
	}
	return nil
}

// limits are the tokens at the ends of texts, from mlc-chat-config.json.
type limits struct {
	BOS    some  `json:"bos_token_id"`
	EOS    some  `json:"eos_token_id"`
	Prefix []int `json:"prompt_prefix_token_ids"` // see config.PromptPrefix
	// Text is that of the EOS token in tokenizer_config.json, for models with several.
	Text content `json:"-"`
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

// entries returns the tokenizer of a model whose embedding has so many rows, as a GGUF describes it.
func (t readable) entries(rows int, l limits) ([]gguf.Entry, error) {
	if m := t.Model; m.Type != "BPE" || m.Dropout != nil || m.Prefix != nil && *m.Prefix != "" ||
		m.Suffix != nil && *m.Suffix != "" {
		return nil, fmt.Errorf("a tokenizer of type %q, or with dropout, prefixes or suffixes, is not supported", m.Type)
	}
	tokens, types, err := t.tokens(rows)
	if err != nil {
		return nil, err
	}
	key := func(name string, value any) gguf.Entry {
		return gguf.Entry{Key: "tokenizer.ggml." + name, Value: value}
	}
	listed := []gguf.Entry{key("tokens", tokens), key("token_type", types)}
	var out []gguf.Entry
	if t.Model.ByteFallback {
		prefix, err := t.spaces()
		if err != nil {
			return nil, err
		}
		out = append(out, key("model", "llama"), key("add_space_prefix", prefix), key("scores", t.scores(tokens)))
		if id := slices.Index(types, gguf.TokenUnknown); id >= 0 {
			out = append(out, key("unknown_token_id", uint32(id)))
		}
	} else {
		pre, err := recognise(t.Normalizer, t.PreTokenizer)
		if err != nil {
			return nil, err
		}
		if whole := (gguf.Vocabulary{Pre: pre}).WholeWords(); whole != t.Model.IgnoreMerges {
			return nil, fmt.Errorf("its words are those of %s, whose ignore_merges is %t", pre, whole)
		}
		var merges []string
		for _, m := range t.Model.Merges {
			merges = append(merges, m[0]+" "+m[1])
		}
		out = append(out, key("model", "gpt2"), key("pre", pre), key("merges", merges))
	}
	return l.describe(append(out, listed...), key, tokens)
}

// tokens returns the texts and types of the tokens. Rows of the embedding without a token get a text that never occurs.
func (t readable) tokens(rows int) (tokens []string, types []int32, err error) {
	var vocab map[string]int
	if err := json.Unmarshal(t.Model.Vocab, &vocab); err != nil {
		return nil, nil, fmt.Errorf("vocab: %w", err)
	}
	tokens, types = make([]string, rows), slices.Repeat([]int32{gguf.TokenNormal}, rows)
	set := func(text string, id int, kind int32) error {
		if id < 0 || id >= rows || tokens[id] != "" && tokens[id] != text {
			return fmt.Errorf("token %q has the id %d, which is another token's or has no row in the embedding", text, id)
		}
		tokens[id], types[id] = text, kind
		return nil
	}
	for text, id := range vocab {
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
		unknown := "<unk>"
		if t.Model.Unknown != nil {
			unknown = *t.Model.Unknown
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

// trims reports whether a token takes the white space after it.
func (t readable) trims() bool {
	return slices.ContainsFunc(t.AddedTokens, func(a added) bool { return a.RStrip })
}

// spaces reads how a tokenizer with scores writes spaces, and whether it puts one before a text.
func (t readable) spaces() (prefix bool, err error) {
	steps := t.Normalizer.flat()
	if len(steps) == 2 && steps[0].Type == "Prepend" && steps[0].Prepend == gguf.Space {
		prefix, steps = true, steps[1:]
	}
	isSpace := func(s step) bool { return s.Pattern.String != nil && *s.Pattern.String == " " }
	if len(steps) != 1 || steps[0].Type != "Replace" || !isSpace(steps[0]) || steps[0].Content != gguf.Space {
		return prefix, fmt.Errorf("a tokenizer with bytes as fallback must write spaces as %s, and do nothing else first",
			gguf.Space)
	}
	for _, s := range t.PreTokenizer.flat() {
		if s.Type != "Split" || !isSpace(s) { // after the replacement there are no spaces
			return prefix, fmt.Errorf("pre_tokenizer %s is not supported after a normalizer", s.Type)
		}
	}
	return prefix, nil
}

// scores returns scores that give the merges their order. Tokens whose merges are interleaved get the same score.
func (t readable) scores(tokens []string) []float32 {
	last := map[string]int{}
	for i, m := range t.Model.Merges {
		last[m[0]+m[1]] = i
	}
	scores, of, end := make([]float32, len(tokens)), map[string]float32{}, -1
	score := float32(0)
	for i, m := range t.Model.Merges {
		if i > end {
			score--
		}
		end = max(end, last[m[0]+m[1]])
		of[m[0]+m[1]] = score
	}
	for id, text := range tokens {
		if s, made := of[text]; made {
			scores[id] = s
		} else {
			scores[id] = score - 1 // never joined
		}
	}
	return scores
}

// sameMerges reports whether scores give the merges of the file: the same, and their tokens in the same order. Of two
// ways to make a token neither comes first, because SentencePiece joins the leftmost pair.
func (t readable) sameMerges(v gguf.Vocabulary) error {
	made := func(m string) string { return strings.Replace(m, " ", "", 1) }
	var own []string
	for _, m := range t.Model.Merges {
		own = append(own, m[0]+" "+m[1])
	}
	sort := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	if !slices.EqualFunc(own, v.Merges, func(a, b string) bool { return made(a) == made(b) }) ||
		!slices.Equal(sort(own), sort(v.Merges)) {
		return errors.New("its merges do not follow from scores, as SentencePiece needs them")
	}
	return nil
}

// describe adds the tokens at the ends of texts. Raw prompts start as WebLLM's do, whatever the post-processor says.
func (l limits) describe(out []gguf.Entry, key func(string, any) gguf.Entry, tokens []string) (
	[]gguf.Entry, error) {
	if len(l.BOS) > 0 {
		out = append(out, key("bos_token_id", uint32(l.BOS[0])))
	}
	if n := len(l.Prefix); n > 1 || n == 1 && (len(l.BOS) == 0 || l.Prefix[0] != l.BOS[0]) {
		return nil, errors.New("its prompts start with other tokens than BOS")
	}
	out = append(out, key("add_bos_token", len(l.Prefix) == 1))
	if eos := slices.Index(tokens, string(l.Text)); slices.Contains(l.EOS, eos) {
		out = append(out, key("eos_token_id", uint32(eos)))
	} else if len(l.EOS) > 0 {
		out = append(out, key("eos_token_id", uint32(l.EOS[0])))
	}
	return out, nil
}
