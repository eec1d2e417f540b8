package resolve

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/bench/score"
	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// The reference implementation is certain of the tiny model's own text, and coarser arithmetic moves it further.
func TestAnchorOfTheTinyModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	check.Err(t, tiny.WriteFile(path))
	m := models.Model{Path: path,
		Model: record.Model{Name: tiny.Name, SHA256: tiny.SHA256, Format: models.GGUF, Parameters: 426000}}
	r := &Resolver{cache: cache{}}
	text, err := r.tinyText(m)
	check.Err(t, err)
	from := len(text.IDs) - 64
	kinds := [][]rounding.Arithmetic{{rounding.Single}, {rounding.HalfCache}, {rounding.Half}, {rounding.Eight}}
	a, err := anchor(t.Context(), m, text.IDs, from, kinds)
	check.Err(t, err)
	if len(a.Scores) != 64 || a.SHA256 != tiny.SHA256 || len(a.Yardsticks) != len(kinds) {
		t.Fatalf("%d scores, %+v", len(a.Scores), a.Anchor)
	}
	for i, s := range a.Scores {
		check.Also(t, s.Sound())
		if s.Chosen() != text.IDs[from+i] || s.Forced != s.Chosen() || len(s.Top) != score.Candidates {
			t.Errorf("position %d: %+v; the text has %d", i, s, text.IDs[from+i])
		}
	}
	single, half := a.Yardsticks["float32"], a.Yardsticks["float16 activations"]
	if !(single > 0) || half < 100*single || math.IsNaN(half) || !(a.Yardsticks["8-bit activations"] > single) {
		t.Errorf("%v", a.Yardsticks)
	}
}

func TestAnchorRefuses(t *testing.T) {
	for want, m := range map[string]record.Model{
		"is not a GGUF file": {Format: models.WebLLM, Name: "m"},
		"has 1236 million parameters; it computes up to 200 million": {Format: models.GGUF, Name: "m", Parameters: 1236e6},
	} {
		_, err := anchor(t.Context(), models.Model{Model: m}, []int{1, 2}, 1, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
