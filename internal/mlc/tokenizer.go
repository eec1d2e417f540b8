package mlc

import (
	"bytes"
	"encoding/json"

	"llmparity/internal/gguf"
)

// tokenizerFile is tokenizer.json of the tokenizers library.
type tokenizerFile struct {
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
	Type         string   `json:"type"`
	Dropout      any      `json:"dropout"`
	Unknown      any      `json:"unk_token"`
	Prefix       any      `json:"continuing_subword_prefix"`
	Suffix       any      `json:"end_of_word_suffix"`
	FuseUnknown  bool     `json:"fuse_unk"`
	ByteFallback bool     `json:"byte_fallback"`
	IgnoreMerges bool     `json:"ignore_merges"`
	Vocab        inOrder  `json:"vocab"`
	Merges       []string `json:"merges"`
}

// inOrder encodes the vocabulary sorted by id, so that the file is reproducible.
type inOrder []string

func (tokens inOrder) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for id, token := range tokens {
		if id > 0 {
			b.WriteByte(',')
		}
		for i, v := range []any{token, id} {
			j, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				b.WriteByte(':')
			}
			b.Write(j)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func tokenizerOf(v gguf.Vocabulary) tokenizerFile {
	t := tokenizerFile{
		Version: "1.0", AddedTokens: []added{},
		Model: mergesModel{Type: "BPE", Vocab: v.Tokens, Merges: v.Merges, IgnoreMerges: v.WholeWords()},
	}
	if v.Kind == gguf.SentencePiece {
		t.scored(v)
	} else {
		t.byteLevel(v)
	}
	// Special tokens must also be in the vocabulary, or the library assigns new ids.
	for id, text := range v.Tokens {
		if v.Verbatim(id) {
			special := v.Types[id] != gguf.TokenUserDefined
			t.AddedTokens = append(t.AddedTokens, added{ID: id, Content: text, RStrip: v.Trims(id), Special: special})
		}
	}
	return t
}

// The pre-tokenizers of the models' own tokenizers. With case ignored, 's also matches 'ſ.
const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	wordsOr      = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|`
	orTheRest    = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	llama3Words  = wordsOr + `\p{N}{1,3}` + orTheRest
	qwen2Words   = wordsOr + `\p{N}` + orTheRest
)

func split(regex string) map[string]any {
	return map[string]any{"type": "Split", "pattern": map[string]any{"Regex": regex}, "behavior": "Isolated",
		"invert": false}
}

func (t *tokenizerFile) byteLevel(v gguf.Vocabulary) {
	level := byteLevel{Type: "ByteLevel", Trim: true, UseRegex: true}
	plain := byteLevel{Type: "ByteLevel", Trim: true}
	t.Decoder = level
	t.PostProcessor = sequence("processors", level, startOf(v))
	switch v.Pre {
	case gguf.PreSmolLM:
		t.PreTokenizer = sequence("pretokenizers", map[string]any{"type": "Digits", "individual_digits": true}, level)
	case gguf.PreLlama3:
		t.PreTokenizer = sequence("pretokenizers", split(llama3Words), plain)
	case gguf.PreQwen2:
		t.PreTokenizer = sequence("pretokenizers", split(qwen2Words), plain)
	default:
		t.PreTokenizer = level
	}
	if v.Composes() {
		t.Normalizer = map[string]any{"type": "NFC"}
	}
}

// scored expresses a SentencePiece tokenizer as merges, without a pre-tokenizer: the whole text is one word.
func (t *tokenizerFile) scored(v gguf.Vocabulary) {
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
// config.PromptPrefix.
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
