package gguf_test

import (
	"slices"
	"strings"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
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

func TestSentencePieceRefuses(t *testing.T) {
	for _, c := range []struct {
		entry gguf.Entry
		says  string
		kind  fault.Kind
	}{
		{entry("scores", nil), "metadata tokenizer.ggml.scores is missing", fault.BadModel},
		{entry("scores", []float32{1}), "want an array of float32, one per token", fault.BadModel},
		{entry("scores", make([]float32, 264)), `tokens "ab" and "ba" have the same score`, fault.UnknownArch},
		{entry("add_eos_token", true), "tokenizer.ggml.add_eos_token is true", fault.UnknownArch},
		{entry("remove_extra_whitespaces", true), "tokenizer.ggml.remove_extra_whitespaces is true", fault.UnknownArch},
		{entry("precompiled_charsmap", []uint8{1}), "tokenizer.ggml.precompiled_charsmap", fault.UnknownArch},
		{entry("bos_token_id", uint32(264)), "tokenizer.ggml.bos_token_id is 264", fault.BadModel},
	} {
		_, err := vocabularyOf(t, scored(strings.Fields("a b ab ba aa"), c.entry))
		if err == nil || !strings.Contains(err.Error(), c.says) || fault.Of(err) != c.kind {
			t.Errorf("%v: got %v (%s), want %q", c.entry, err, fault.Of(err), c.says)
		}
	}
	if _, err := vocabularyOf(t, scored([]string{"a", "a"})); err == nil ||
		!strings.Contains(err.Error(), `are both "a"`) {
		t.Errorf("two equal tokens: %v", err)
	}
}

func TestPreTokenizers(t *testing.T) {
	with := func(pre string, more ...gguf.Entry) []gguf.Entry {
		return changed([]gguf.Entry{
			entry("model", "gpt2"), entry("pre", pre), entry("tokens", []string{"a", "b", "ab"}),
			entry("merges", []string{"a b"}),
			entry("bos_token_id", uint32(2)),
		}, more...)
	}
	for name, want := range map[string]string{"gpt-2": gguf.PreGPT2, "smollm": gguf.PreSmolLM, "qwen2": gguf.PreQwen2,
		"llama-bpe": gguf.PreLlama3, "llama3": gguf.PreLlama3, "llama-v3": gguf.PreLlama3} {
		v, err := vocabularyOf(t, with(name))
		llama3 := want == gguf.PreLlama3
		if err != nil || v.Pre != want || v.AddBOS != llama3 || v.WholeWords() != llama3 ||
			v.Composes() != (want == gguf.PreQwen2) {
			t.Errorf("%s: got %q, BOS %v, %v", name, v.Pre, v.AddBOS, err)
		}
	}
	for _, name := range []string{"default", "olmo", "tekken", "falcon3", "deepseek-r1-qwen", ""} {
		if _, err := vocabularyOf(t, with(name)); fault.Of(err) != fault.UnknownArch ||
			!strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	if _, err := vocabularyOf(t, with("llama3", entry("bos_token_id", nil))); fault.Of(err) != fault.BadModel {
		t.Errorf("missing BOS: got %v", err)
	}
	if v, err := vocabularyOf(t, with("llama3", entry("add_bos_token", false))); err != nil || v.AddBOS {
		t.Errorf("add_bos_token ignored: %v", err)
	}
}
