package tiny

import (
	"fmt"
	"strings"

	"llmparity/internal/models/gguf"
)

// A random model's vocabulary has a token for every byte, so that it accepts any prompt, then the merges of the corpus,
// then filler words that never occur in texts, then special tokens.
const (
	mostMerges = 360
	leastVocab = 512
)

// randomVocabulary also returns which tokens the model may generate: those of ASCII text.
func (s Spec) randomVocabulary() (v gguf.Vocabulary, sayable []bool) {
	if s.Tokenizer == SentencePiece {
		var more []string
		if s.Architecture == gguf.Phi3 { // llama.cpp expects them
			more = phi3Tokens
		}
		v = scoredVocabulary(s.Vocab, more...)
	} else {
		var bytes []byte
		for b := range 256 {
			bytes = append(bytes, byte(b))
		}
		v = byteLevel(s.Vocab, s.Tokenizer, bytes, mostMerges)
	}
	v.ChatTemplate = chatTemplate
	sayable = make([]bool, len(v.Tokens))
	for id, text := range v.Tokens {
		sayable[id] = v.Types[id] == gguf.TokenNormal && printable(text)
	}
	return v, sayable
}

// printable reports whether a token is ASCII text, in the spelling of either kind, including newline and tab.
func printable(token string) bool {
	for _, r := range token {
		switch {
		case r > ' ' && r <= '~', string(r) == gguf.Space, r == gguf.ByteRune(' '), r == gguf.ByteRune('\n'),
			r == gguf.ByteRune('\t'):
		default:
			return false
		}
	}
	return true
}

// phi3Tokens are special tokens of a phi3.
var phi3Tokens = []string{bos, "<|end|>", "<|user|>", "<|assistant|>"}

// scoredVocabulary uses the rank of a piece as its score. Merges with bytes in byte-level spelling are left out.
// The last tokens are the special ones.
func scoredVocabulary(size int, special ...string) gguf.Vocabulary {
	size -= len(special)
	v := gguf.Vocabulary{Kind: gguf.SentencePiece, BOS: 1, EOS: 2}
	add := func(text string, kind int32, score float32) {
		v.Tokens, v.Types, v.Scores = append(v.Tokens, text), append(v.Types, kind), append(v.Scores, score)
	}
	add("<unk>", gguf.TokenUnknown, 0)
	add("<s>", gguf.TokenControl, 0)
	add("</s>", gguf.TokenControl, 0)
	for b := range 256 {
		add(gguf.ByteToken(byte(b)), gguf.TokenByte, 0)
	}
	for b := byte('!'); b <= '~'; b++ {
		add(string(rune(b)), gguf.TokenNormal, -1e6)
	}
	add(gguf.Space, gguf.TokenNormal, -1e6)
	for rank, pair := range trained()[:mostMerges] {
		text := strings.ReplaceAll(pair[0]+pair[1], string(gguf.ByteRune(' ')), gguf.Space)
		if len(v.Tokens) < size && printable(text) && !strings.ContainsRune(text, gguf.ByteRune('\n')) {
			add(text, gguf.TokenNormal, -float32(rank+1))
		}
	}
	at := len(v.Tokens)
	fill(&v, size, gguf.Space)
	for range v.Tokens[at:] {
		v.Types, v.Scores = append(v.Types, gguf.TokenNormal), append(v.Scores, -2e6)
	}
	for _, text := range special {
		add(text, gguf.TokenControl, 0)
	}
	return v
}

// fill adds words up to a size. Nothing merges into them, because no piece ends in an underscore and a number.
func fill(v *gguf.Vocabulary, size int, space string) {
	for i := 0; len(v.Tokens) < size; i++ {
		v.Tokens = append(v.Tokens, fmt.Sprintf("%s_%d_", space, i))
	}
}

func (s Spec) tokenizerMetadata(v gguf.Vocabulary) []gguf.Entry {
	m := []gguf.Entry{
		{Key: "tokenizer.ggml.tokens", Value: v.Tokens},
		{Key: "tokenizer.ggml.token_type", Value: v.Types},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(v.BOS)},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(v.EOS)},
		{Key: "tokenizer.chat_template", Value: v.ChatTemplate},
	}
	if v.Kind == gguf.SentencePiece {
		return append(m, gguf.Entry{Key: "tokenizer.ggml.model", Value: "llama"},
			gguf.Entry{Key: "tokenizer.ggml.scores", Value: v.Scores})
	}
	return append(m, gguf.Entry{Key: "tokenizer.ggml.model", Value: "gpt2"},
		gguf.Entry{Key: "tokenizer.ggml.pre", Value: v.Pre},
		gguf.Entry{Key: "tokenizer.ggml.merges", Value: v.Merges})
}
