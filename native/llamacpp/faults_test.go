package llamacpp

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/damage"
	"llmparity/internal/models/tiny/tinytest"
)

// intactModel is the tiny model after one of its prompts.
func intactModel(t *testing.T) *damage.Intact {
	t.Helper()
	f := tinytest.Tiny(t)
	tokens, _ := tinytest.Oracle(t, f)
	in, err := damage.NewIntact(f, tokens.Encode(tinytest.Prompts()[1].Text))
	check.Err(t, err)
	return in
}

// shows plants a fault, and fails if llama-server's scores do not show it.
func shows(t *testing.T, in *damage.Intact, f damage.Fault) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged.gguf")
	out, err := os.Create(path)
	check.Err(t, err)
	check.Err(t, damage.Write(out, tinytest.Tiny(t), f))
	check.Err(t, out.Close())
	s, _ := loadedSession(t, at(path))
	apart := enginetest.ScoresApart(t, s, in)
	if found := apart > damage.Tolerance; found != (f.Hidden == "") {
		t.Errorf("%s in %s: scores are %.5f apart; %s", f.Kind, f.Tensor, apart, f.Hidden)
	}
	t.Logf("%s in %s: scores are %.5f apart", f.Kind, f.Tensor, apart)
}

// Without a fault scores differ by less than the tolerance, with one of any kind by more.
func TestScoresShowFaultsInLlamaServer(t *testing.T) {
	in := intactModel(t)
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	check.Err(t, tiny.WriteFile(path))
	s, _ := loadedSession(t, at(path))
	apart := enginetest.ScoresApart(t, s, in)
	t.Logf("without a fault scores are %.2g apart", apart)
	if apart > damage.Tolerance {
		t.Errorf("without a fault scores are %.5f apart, at most %g are right", apart, damage.Tolerance)
	}
	all := in.All()
	for _, kind := range damage.Kinds() {
		shows(t, in, all[slices.IndexFunc(all, func(f damage.Fault) bool { return f.Kind == kind })])
	}
	shows(t, in, all[slices.IndexFunc(all, func(f damage.Fault) bool { return f.Hidden != "" })])
}
