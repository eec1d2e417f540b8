package enginetest

import (
	"path/filepath"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/models"
	"llmparity/internal/models/tiny"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
)

// Context is the context length of the tiny model's cases.
const Context = 1024

// TinyModel writes the tiny model to the test's folder.
func TinyModel(t testing.TB) models.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), tiny.Name+".gguf")
	check.Err(t, tiny.WriteFile(path))
	return models.Model{Path: path, Model: record.Model{Name: tiny.Name, SHA256: tiny.SHA256, Format: "gguf",
		Architecture: "llama", DType: "f32", Context: Context}}
}

// Tiny returns a case for each of the tiny model's prompts, with n greedy ids from the reference implementation. The
// caller sets New.
func Tiny(t *testing.T, n int) []Case {
	t.Helper()
	m := TinyModel(t)
	tokenizer, model, err := reference.Open(m.Path)
	check.Err(t, err)
	var cases []Case
	for _, p := range tinytest.Prompts() {
		c := Case{Model: m, Prompt: p.Text, PromptIDs: tokenizer.Encode(p.Text)}
		if c.Expected, _, err = model.Greedy(c.PromptIDs, n); err != nil {
			t.Fatal(err)
		}
		c.Text = tokenizer.Decode(c.Expected)
		cases = append(cases, c)
	}
	return cases
}
