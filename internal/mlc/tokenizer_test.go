package mlc

import (
	"slices"
	"strings"
	"testing"

	"llmparity/internal/gguf"
	"llmparity/internal/tokenizer/tokenizertest"
)

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
