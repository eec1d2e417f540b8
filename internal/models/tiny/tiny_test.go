package tiny_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"llmparity/assets/plans"
	"llmparity/internal/bench/plan"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/tinytest"
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

// Limits for the prompts. An f16 KV cache moves these log-probabilities by up to 0.05, and with flash attention by 0.1.
const (
	length      = 64
	defaultGap  = 0.3 // of the default plan's prompt
	leastGap    = 0.08
	medianGap   = 1.0
	leastTokens = 40
)

func TestPromptsGiveVariedText(t *testing.T) {
	f := tinytest.Tiny(t)
	tok, _ := tinytest.Oracle(t, f)
	var gaps []float64
	for _, a := range tinytest.Answers(t, f, tinytest.Prompts(), length) {
		varied(t, a, leastGap)
		t.Logf("%-42s %3d tokens, gap %.3f, distinct %d: %.60q", a.Name, len(a.In), a.Least(), a.Distinct(),
			tok.Decode(a.Out))
		gaps = append(gaps, a.Margins...)
	}
	slices.Sort(gaps)
	if median := gaps[len(gaps)/2]; math.Abs(median-medianGap) > 0.3 {
		t.Errorf("the median gap is %.3f, about %v is wanted", median, medianGap)
	}
}

func TestDefaultPlanGivesVariedText(t *testing.T) {
	p, err := plan.Parse(plans.Default, "default.yaml", kinds.All...)
	check.Err(t, err)
	for _, prompt := range p.Prompts {
		asked := []tinytest.Prompt{{Name: "default plan", Text: prompt.Text}}
		for _, a := range tinytest.Answers(t, tinytest.Tiny(t), asked, p.MaxTokens) {
			varied(t, a, defaultGap)
		}
	}
}

func varied(t *testing.T, a tinytest.Answer, gap float64) {
	t.Helper()
	if slices.Max(a.Out) >= 512-3 {
		t.Errorf("%s: a token is special: %v", a.Name, a.Out)
	}
	if a.Least() < gap || a.Distinct() < leastTokens {
		t.Errorf("%s: least gap %.4f and %d distinct tokens; %v and %d are wanted", a.Name, a.Least(), a.Distinct(), gap,
			leastTokens)
	}
}
