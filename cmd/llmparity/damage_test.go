package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"llmparity/browser/webllm"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny/damage"
	"llmparity/internal/models/tiny/tinytest"
)

// inWebLLM converts a damaged model to a package, whose checksums are right, and returns how far WebLLM's scores of a
// text are from those of the intact model. Without a fault the model is intact.
func inWebLLM(t *testing.T, in *damage.Intact, f damage.Fault) float64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	out, err := os.Create(path)
	check(t, err)
	check(t, damage.Write(out, tinytest.Tiny(t), f))
	check(t, out.Close())
	m, err := models.Open(t.Context(), path, enginetest.Context)
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	apart := enginetest.ScoresApart(t, load(t, ctx, new(engineFlags).chosen().Engine(webllm.Name), m), in)
	t.Logf("%s in %s: scores are %.2g apart", f.Kind, f.Tensor, apart)
	return apart
}

// intactModel is the tiny model after one of its prompts.
func intactModel(t *testing.T) *damage.Intact {
	t.Helper()
	f := tinytest.Tiny(t)
	tokens, _ := tinytest.Oracle(t, f)
	in, err := damage.NewIntact(f, tokens.Encode(tinytest.Prompts()[1].Text))
	check(t, err)
	return in
}

// Flipped signs in a package with right checksums may leave the text as it was, but not the scores.
func TestScoresShowFaultsInWebLLM(t *testing.T) {
	browserTest(t)
	t.Parallel()
	in := intactModel(t)
	if apart := inWebLLM(t, in, damage.Fault{}); apart > damage.Tolerance {
		t.Errorf("without a fault scores are %.5f apart, at most %g are right", apart, damage.Tolerance)
	}
	f := damage.Fault{Kind: damage.Signs, Tensor: "blk.1.attn_output.weight"}
	if apart := inWebLLM(t, in, f); apart <= damage.Tolerance {
		t.Errorf("%s in %s: scores are %.5f apart", f.Kind, f.Tensor, apart)
	}
}
