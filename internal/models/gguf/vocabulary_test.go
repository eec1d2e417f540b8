package gguf_test

import (
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/gguf"
)

// scored returns the metadata of a SentencePiece vocabulary: special tokens, bytes, and pieces by descending score.
func scored(pieces []string, more ...gguf.Entry) []gguf.Entry {
	tokens, types, scores := []string{"<unk>", "<s>", "</s>"}, []int32{2, 3, 3}, []float32{0, 0, 0}
	for b := range 256 {
		tokens, types, scores = append(tokens, gguf.ByteToken(byte(b))), append(types, gguf.TokenByte),
			append(scores, 0)
	}
	for i, p := range pieces {
		score := float32(-i)
		if strings.Trim(p, gguf.Space) == "" {
			score = -1e9
		}
		tokens, types, scores = append(tokens, p), append(types, gguf.TokenNormal), append(scores, score)
	}
	return changed([]gguf.Entry{
		{Key: "tokenizer.ggml.model", Value: "llama"}, {Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.token_type", Value: types}, {Key: "tokenizer.ggml.scores", Value: scores},
	}, more...)
}

// changed replaces or adds entries; nil values remove them.
func changed(entries []gguf.Entry, more ...gguf.Entry) []gguf.Entry {
	for _, m := range more {
		entries = slices.DeleteFunc(entries, func(e gguf.Entry) bool { return e.Key == m.Key })
		if m.Value != nil {
			entries = append(entries, m)
		}
	}
	return entries
}

func vocabularyOf(t *testing.T, metadata []gguf.Entry) (gguf.Vocabulary, error) {
	t.Helper()
	f, err := read(written(t, metadata, nil))
	check.Err(t, err)
	return f.Vocabulary()
}

func entry(name string, value any) gguf.Entry {
	return gguf.Entry{Key: "tokenizer.ggml." + name, Value: value}
}

func TestMergesFollowFromScores(t *testing.T) {
	v, err := vocabularyOf(t, scored(strings.Fields("▁a ab ▁ab b a ▁ ▁▁ ▁▁▁ ▁▁▁▁")))
	check.Err(t, err)
	want := []string{"▁ a", "a b", "▁a b", "▁ ab", // by score, and the longest left part first
		"▁▁▁ ▁", "▁▁ ▁▁", "▁▁ ▁", "▁ ▁▁▁", "▁ ▁▁", "▁ ▁"} // of equal scores
	if !slices.Equal(v.Merges, want) {
		t.Errorf("merges are %q, want %q", v.Merges, want)
	}
	if v.Kind != gguf.SentencePiece || !v.AddBOS || v.BOS != 1 || v.EOS != 2 || !v.SpacePrefix {
		t.Errorf("got kind %v, BOS %d added %v, EOS %d, prefix %v", v.Kind, v.BOS, v.AddBOS, v.EOS, v.SpacePrefix)
	}
	if r, found := v.Uncovered("é 世 \xff"); found {
		t.Errorf("%q is uncovered despite byte tokens", r)
	}
	v, err = vocabularyOf(t, scored([]string{"a"}, entry("add_bos_token", false), entry("add_space_prefix", false),
		entry("eos_token_id", uint32(259))))
	if err != nil || v.AddBOS || v.SpacePrefix || v.EOS != 259 {
		t.Errorf("BOS added %v, EOS %d, prefix %v: %v", v.AddBOS, v.EOS, v.SpacePrefix, err)
	}
}

// byteLevel returns the metadata of a byte-level vocabulary.
func byteLevel(more ...gguf.Entry) []gguf.Entry {
	return changed([]gguf.Entry{
		entry("model", "gpt2"), entry("pre", "gpt-2"), entry("tokens", []string{"a", "b", "ab"}),
		entry("merges", []string{"a b"}), entry("bos_token_id", uint32(2)),
	}, more...)
}

func TestVocabularyRefuses(t *testing.T) {
	const bad, unknown = fault.BadModel, fault.UnknownArch
	pieces := func(more ...gguf.Entry) []gguf.Entry { return scored(strings.Fields("a b ab ba aa"), more...) }
	for _, c := range []struct {
		metadata []gguf.Entry
		says     string
		kind     fault.Kind
	}{
		{byteLevel(entry("model", "t5")), `tokenizer "t5" is not supported; supported: gpt2, llama`, unknown},
		{byteLevel(entry("model", "llama")),
			`tokenizer "llama" needs a token for every byte, but <0x00> is missing`, unknown},
		{byteLevel(entry("merges", []string{"ab"})), `merge 0 of tokenizer.ggml.merges is "ab"`, bad},
		{byteLevel(entry("merges", []string{"b a"})), `"ba" is not a token`, bad},
		{byteLevel(entry("merges", []string{" b"})),
			`merge 0 of tokenizer.ggml.merges is " b", but "" is not a token`, bad},
		{byteLevel(entry("merges", nil)), "metadata tokenizer.ggml.merges is missing", bad},
		{byteLevel(entry("merges", []int32{1})),
			"metadata tokenizer.ggml.merges is []int32 [1], want an array of strings", bad},
		{byteLevel(entry("merges", []string{"a b", "a b"})),
			`merges 0 and 1 of tokenizer.ggml.merges are both "a b"`, bad},
		{byteLevel(entry("tokens", []string{"a", strings.Repeat("b", 5000)})),
			"token 1 of tokenizer.ggml.tokens has 5000 bytes", bad},
		{byteLevel(entry("token_type", []int32{1})), "tokenizer.ggml.token_type", bad},
		{byteLevel(entry("eos_token_id", uint32(3))), "tokenizer.ggml.eos_token_id is 3", bad},
		{pieces(entry("scores", nil)), "metadata tokenizer.ggml.scores is missing", bad},
		{pieces(entry("scores", []float32{1})), "want an array of float32, one per token", bad},
		{pieces(entry("scores", make([]float32, 264))), `tokens "ab" and "ba" have the same score`, unknown},
		{pieces(entry("add_eos_token", true)), "tokenizer.ggml.add_eos_token is true", unknown},
		{pieces(entry("remove_extra_whitespaces", true)), "tokenizer.ggml.remove_extra_whitespaces is true", unknown},
		{pieces(entry("precompiled_charsmap", []uint8{1})), "tokenizer.ggml.precompiled_charsmap", unknown},
		{pieces(entry("bos_token_id", uint32(264))), "tokenizer.ggml.bos_token_id is 264", bad},
		{scored([]string{"a", "a"}), `are both "a"`, bad},
	} {
		_, err := vocabularyOf(t, c.metadata)
		if err == nil || !strings.Contains(err.Error(), c.says) || fault.Of(err) != c.kind {
			t.Errorf("got %v (%s), want %q", err, fault.Of(err), c.says)
		}
	}
}

func TestPreTokenizers(t *testing.T) {
	for name, want := range map[string]string{"gpt-2": gguf.PreGPT2, "smollm": gguf.PreSmolLM, "qwen2": gguf.PreQwen2,
		"llama-bpe": gguf.PreLlama3, "llama3": gguf.PreLlama3, "llama-v3": gguf.PreLlama3} {
		v, err := vocabularyOf(t, byteLevel(entry("pre", name)))
		third := want == gguf.PreLlama3
		if err != nil || v.Pre != want || v.AddBOS != third || v.WholeWords() != third ||
			v.Composes() != (want == gguf.PreQwen2) {
			t.Errorf("%s: got %q, BOS %v, %v", name, v.Pre, v.AddBOS, err)
		}
	}
	for _, name := range []string{"default", "olmo", "tekken", "falcon3", "deepseek-r1-qwen", ""} {
		if _, err := vocabularyOf(t, byteLevel(entry("pre", name))); fault.Of(err) != fault.UnknownArch ||
			!strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	llama3 := entry("pre", "llama3")
	if _, err := vocabularyOf(t, byteLevel(llama3, entry("bos_token_id", nil))); fault.Of(err) != fault.BadModel {
		t.Errorf("missing BOS: got %v", err)
	}
	if v, err := vocabularyOf(t, byteLevel(llama3, entry("add_bos_token", false))); err != nil || v.AddBOS {
		t.Errorf("add_bos_token ignored: %v", err)
	}
}
