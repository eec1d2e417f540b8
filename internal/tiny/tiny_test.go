package tiny_test

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"testing"

	"llmparity/internal/check"
	"llmparity/internal/tiny"
	"llmparity/internal/tiny/tinytest"
)

func TestFileIsReproducible(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	check.Err(t, tiny.WriteFile(path))
	content := check.Read(t, path)
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != tiny.SHA256 {
		t.Errorf("SHA-256 is %s, the constant says %s", got, tiny.SHA256)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Limits for the test prompts.
const (
	length      = 64
	leastMargin = 0.3 // correct float32 engines were seen to differ at 0.007
	leastTokens = 40
)

func TestPromptsGiveVariedText(t *testing.T) {
	f := tinytest.Tiny(t)
	tok, _ := tinytest.Oracle(t, f)
	for _, a := range tinytest.Answers(t, f, tinytest.Prompts(), length) {
		if slices.Max(a.Out) >= 512-3 {
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
