package tokenizer_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/models/tokenizer/tokenizertest"
)

func TestTokensMatchGolden(t *testing.T) {
	texts := tokenizertest.Texts(t)
	for _, k := range tokenizertest.Kinds(t) {
		if len(k.IDs) != len(texts) || len(texts) < 300 {
			t.Fatalf("%s: tokens of %d texts; there are %d", k.Name, len(k.IDs), len(texts))
		}
		tokens := tokenizer.New(k.Vocabulary)
		for i, text := range texts {
			if got := tokens.Prompt(text); !slices.Equal(got, k.IDs[i]) {
				t.Errorf("%s: %q: got %v, want %v", k.Name, text, got, k.IDs[i])
			}
		}
	}
}

// The golden texts tell all kinds apart.
func TestKindsDiffer(t *testing.T) {
	kinds := tokenizertest.Kinds(t)
	for i, a := range kinds {
		for _, b := range kinds[:i] {
			if slices.EqualFunc(a.IDs, b.IDs, slices.Equal) {
				t.Errorf("no text distinguishes %s from %s", a.Name, b.Name)
			}
		}
	}
}

// With case ignored, a long s after an apostrophe is a contraction in Llama 3's rule.
func TestLongSIsAContraction(t *testing.T) {
	v := gguf.Vocabulary{Tokens: []string{"'", "Å", "¿", "t", "¿t"}, Types: []int32{1, 1, 1, 1, 1},
		Merges: []string{"¿ t"}}
	for pre, want := range map[string][]int{gguf.PreLlama3: {0, 1, 2, 3}, gguf.PreQwen2: {0, 1, 2, 3},
		gguf.PreGPT2: {0, 1, 4}} {
		v.Pre = pre
		if got := tokenizer.New(v).Encode("'ſt"); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", pre, got, want)
		}
	}
}

// lossless reports whether Decode must return the text.
func lossless(v gguf.Vocabulary, text string) bool {
	switch {
	case v.Composes():
		return norm.NFC.IsNormalString(text)
	case v.Kind != gguf.SentencePiece:
		return true
	}
	for id, token := range v.Tokens {
		if v.Verbatim(id) && strings.Contains(text, token) {
			return false
		}
	}
	return utf8.ValidString(text) && !strings.Contains(text, gguf.Space)
}

func FuzzDecodeInvertsEncode(f *testing.F) {
	for i, text := range tokenizertest.Texts(f) {
		if i%5 == 0 {
			f.Add(text)
		}
	}
	f.Add("\xff\xc3")
	f.Add("'\u017f \u212a\r\n \r\n\t")
	var tokenizers []*tokenizer.Tokenizer
	for _, k := range tokenizertest.Kinds(f) {
		tokenizers = append(tokenizers, tokenizer.New(k.Vocabulary))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tokens := range tokenizers {
			ids := tokens.Encode(text)
			if back := tokens.Decode(ids); lossless(tokens.Vocabulary, text) && back != text {
				t.Errorf("%q %v: %q comes back as %q", tokens.Pre, tokens.Kind, text, back)
			}
		}
	})
}

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"Hello world":  {"Hello", " world"},
		"it's 1234 ok": {"it", "'s", " 1234", " ok"},
		"a   b \n\n c": {"a", "  ", " b", " \n\n", " c"},
		"x\t\ty  ":     {"x", "\t", "\t", "y", "  "},
		"I'LL'll!?'":   {"I", "'", "LL", "'ll", "!?'"},
		" ":            {" "},
		"naïve ünder":  {"naïve", " ünder"},
	} {
		if got := tokenizer.Words(text, gguf.PreGPT2); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := tokenizer.Words("a 12b", gguf.PreSmolLM); !slices.Equal(got, []string{"a", " ", "1", "2", "b"}) {
		t.Errorf("with digits: got %q", got)
	}
}
