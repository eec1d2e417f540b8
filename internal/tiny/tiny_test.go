package tiny_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"llmparity/internal/gguf"
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/reference"
	"llmparity/internal/tiny/tinytest"
	"llmparity/internal/tokenizer"
)

// model writes the model to memory and loads it.
func model(t *testing.T) (*gguf.File, *reference.Model, *tokenizer.Tokenizer) {
	t.Helper()
	var b bytes.Buffer
	if err := tiny.Write(&b); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), tiny.Name)
	if err != nil {
		t.Fatal(err)
	}
	tok, m := tinytest.Oracle(t, f)
	return f, m, tok
}

func TestFileIsReproducible(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tiny.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != tiny.SHA256 {
		t.Errorf("SHA-256 is %s, the constant says %s", got, tiny.SHA256)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestVocabularyIsTextOnItsOwn(t *testing.T) {
	f, _, tok := model(t)
	v, err := f.Vocabulary()
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Tokens) != tiny.VocabSize {
		t.Fatalf("%d tokens, want %d", len(v.Tokens), tiny.VocabSize)
	}
	for id := range v.Tokens {
		for _, c := range []byte(tok.Decode([]int{id})) {
			if c > '~' || c < ' ' && c != '\n' && c != '\t' {
				t.Errorf("token %d has byte %#x", id, c)
			}
		}
		if special := v.Types[id] == gguf.TokenControl; special != (id >= tiny.VocabSize-tiny.Specials) {
			t.Errorf("token %d %q: special is %v; only the last %d should be", id, v.Tokens[id], special, tiny.Specials)
		}
	}
	if r, ok := v.Uncovered("all of ASCII's printable characters\n\t~"); ok {
		t.Errorf("%q should be covered", r)
	}
	if r, ok := v.Uncovered("a naïve prompt"); !ok || r != 'ï' {
		t.Errorf("uncovered is %q %v, want ï", r, ok)
	}
}

// Limits for the test prompts.
const (
	length      = 64
	leastMargin = 0.3 // correct float32 engines were seen to differ at 0.007
	leastTokens = 40
)

func TestPromptsGiveVariedText(t *testing.T) {
	f, _, tok := model(t)
	for _, a := range tinytest.Answers(t, f, tinytest.Prompts(), length) {
		if slices.Max(a.Out) >= tiny.VocabSize-tiny.Specials {
			t.Errorf("%s: a token is special: %v", a.Name, a.Out)
		}
		t.Logf("%-42s %3d tokens, margin %.3f, distinct %d: %.60q", a.Name, len(a.In), a.Least(), a.Distinct(),
			tok.Decode(a.Out))
		if a.Least() < leastMargin || a.Distinct() < leastTokens {
			t.Errorf("%s: least margin %.4f and %d distinct tokens; %v and %d are wanted", a.Name, a.Least(),
				a.Distinct(),
				leastMargin, leastTokens)
		}
	}
}

// Each tensor matters to the text, so that tests notice a conversion that loses one.
func TestEveryTensorMatters(t *testing.T) {
	var b bytes.Buffer
	tensors := tiny.Weights()
	f, m, tok := model(t)
	prompt := tok.Encode(tinytest.Prompts()[1].Text)
	want, margins, err := m.Greedy(prompt, 32)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range tensors {
		saved := append([]float32(nil), w.Values...)
		for j, v := range saved { // another order of rows, or of values in a vector
			n := len(saved) / 2
			w.Values[(j+n)%len(saved)] = v
		}
		b.Reset()
		if err := gguf.Write(&b, f.Metadata, tensors); err != nil {
			t.Fatal(err)
		}
		copy(tensors[i].Values, saved)
		changed, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), tiny.Name)
		if err != nil {
			t.Fatal(err)
		}
		ids, near, err := reference.Greedy(changed, prompt, 32)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(ids, want) && near[0] == margins[0] {
			t.Errorf("%s can be shuffled unnoticed", w.Name)
		}
	}
}
