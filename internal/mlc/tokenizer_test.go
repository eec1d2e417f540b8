package mlc

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/gguf"
	"llmparity/internal/tokenizer/tokenizertest"
)

// The golden tokens of package tokenizertest were made with these very files, by the library that WebLLM uses.
func TestTokenizerFilesMatchGolden(t *testing.T) {
	for _, k := range tokenizertest.Kinds(t) {
		path := filepath.Join(t.ArtifactDir(), k.Name+".tokenizer.json")
		check.Err(t, writeJSON(path, tokenizerOf(k.Vocabulary)))
		b := check.Read(t, path)
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != k.SHA256 {
			t.Errorf("%s: tokenizer.json has changed: make the golden tokens again, as tokenizertest/testdata/make.py says", k.Name)
		}
	}
}

func TestPromptBOS(t *testing.T) {
	for _, k := range tokenizertest.Kinds(t) {
		c, _ := chatConfig(shapeOf(k.Vocabulary), "q0f32", k.Vocabulary)
		wants := k.Name == "spm" || k.Name == gguf.PreLlama3
		if k.Vocabulary.AddBOS != wants || slices.Equal(c.PromptPrefix, []int{k.Vocabulary.BOS}) != wants {
			t.Errorf("%s: BOS %d is wanted: %v; prefix %v", k.Name, k.Vocabulary.BOS, k.Vocabulary.AddBOS,
				c.PromptPrefix)
		}
		level := "byte_level"
		if strings.HasPrefix(k.Name, "spm") {
			level = "byte_fallback"
		}
		if i := c.TokenizerInfo; i.TokenPostproc != level || i.PrependSpace != (k.Name == "spm") ||
			i.StripSpace != i.PrependSpace {
			t.Errorf("%s: %+v", k.Name, i)
		}
	}
}
