package protocol_test

import (
	"path/filepath"
	"slices"
	"testing"

	"llmparity/internal/engine"
	"llmparity/internal/engine/enginetest"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/damage"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
	"llmparity/native/protocol"
)

// An engine whose arithmetic is wrong has other scores, and other ids.
func TestScoresShowFaultsOfArithmetic(t *testing.T) {
	f := tinytest.Tiny(t)
	tokens, _ := tinytest.Oracle(t, f)
	prompt := tinytest.Prompts()[1].Text
	in, err := damage.NewIntact(f, tokens.Encode(prompt))
	check.Err(t, err)
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	check.Err(t, tiny.WriteFile(path))
	for _, name := range append(damage.Names(), "") {
		argv := []string{example(t)}
		if name != "" {
			argv = append(argv, "--fault", name)
		}
		e := protocol.New(protocol.Config{Command: protocol.Command{Name: "engine", Argv: argv}})
		s, _ := enginetest.Open(t, e)
		enginetest.Load(t, s, models.Model{Path: path, Model: record.Model{Format: "gguf", Context: 1024}})
		apart := enginetest.ScoresApart(t, s, in)
		g, err := enginetest.Generate(t.Context(), s, engine.Request{Prompt: prompt, MaxTokens: len(in.IDs),
			IgnoreEOS: true})
		check.Err(t, err)
		t.Logf("fault %q: scores are %.5f apart", name, apart)
		alike := slices.Equal(g.IDs(), in.IDs)
		if alike != (name == "" || name == damage.Scale) || (apart > damage.Tolerance) != (name != "") {
			t.Errorf("fault %q: the same ids: %v, scores are %.5f apart", name, alike, apart)
		}
	}
}
