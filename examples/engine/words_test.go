package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tokenizer"
)

// The reported pieces add up to the text, and each consists of whole characters.
func TestWordsAddUpToTheText(t *testing.T) {
	f, err := gguf.Open(enginetest.TinyModel(t).Path)
	check.Err(t, err)
	defer f.Close()
	v, err := f.Vocabulary()
	check.Err(t, err)
	tokenizer := tokenizer.New(v)
	for _, text := range []string{"the quick brown fox", strings.Repeat("größe € 漢字 🙂 and ", 20), "漢\xe6\xbc"} {
		ids := tokenizer.Encode(text)
		words, reported, longest := words{tokenizer: tokenizer}, "", 0
		for i, id := range ids {
			bit := words.add(id, i+1 == len(ids))
			if i+1 < len(ids) && !utf8.ValidString(bit) {
				t.Errorf("%q: token %d of %d adds %q", text, i, len(ids), bit)
			}
			reported += bit
			longest = max(longest, len(words.recent))
		}
		if reported != tokenizer.Decode(ids) {
			t.Errorf("%q is told as %q", text, reported)
		}
		if longest > enough+utf8.UTFMax+1 {
			t.Errorf("%q: %d tokens are kept", text, longest)
		}
	}
}
