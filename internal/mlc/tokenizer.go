package mlc

import (
	"bytes"
	"encoding/json"

	"llmparity/internal/gguf"
)

// tokenizerFile is tokenizer.json, the format of the tokenizers library.
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

// inOrder writes the vocabulary by id, so that the file is the same each time and can be read.
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

func tokenizer(v gguf.Vocabulary) tokenizerFile {
	level := byteLevel{Type: "ByteLevel", Trim: true, UseRegex: true}
	t := tokenizerFile{
		Version: "1.0", AddedTokens: []added{}, PreTokenizer: level, PostProcessor: level, Decoder: level,
		Model: mergesModel{Type: "BPE", Vocab: v.Tokens, Merges: v.Merges},
	}
	if v.Pre == gguf.PreSmolLM {
		digits := map[string]any{"type": "Digits", "individual_digits": true}
		t.PreTokenizer = map[string]any{"type": "Sequence", "pretokenizers": []any{digits, level}}
	}
	// Special tokens stand in the vocabulary too: the library gives one that doesn't the next free id.
	for id, text := range v.Tokens {
		kind := v.Types[id]
		if kind == gguf.TokenControl || kind == gguf.TokenUserDefined {
			t.AddedTokens = append(t.AddedTokens, added{ID: id, Content: text, Special: kind == gguf.TokenControl})
		}
	}
	return t
}
