package main

import (
	"os"
	"path/filepath"
	"testing"

	"llmparity/internal/model"
)

func TestCatalogueIDsAreNotPaths(t *testing.T) {
	known, err := builtInCatalogue()
	check(t, err)
	for _, e := range known.Models {
		if !model.Listed(e.ID) {
			t.Errorf("%s is taken for a path", e.ID)
		}
	}
	t.Chdir(t.TempDir())
	check(t, os.WriteFile("Model-v1.0", nil, 0o600))
	for _, path := range []string{"Model-v1.0", "missing.gguf", "./missing", "/missing", "missing.GGUF"} {
		if model.Listed(path) {
			t.Errorf("%s is taken for an id", path)
		}
	}
}

// Without a model on this disk, --local says where it looked.
func TestListLocalNamesTheFoldersOfNoModels(t *testing.T) {
	t.Setenv("HF_HUB_CACHE", filepath.Join(t.TempDir(), "hub"))
	t.Setenv("OLLAMA_MODELS", filepath.Join(t.TempDir(), "store"))
	in := " in Hugging Face's cache (" + os.Getenv("HF_HUB_CACHE") + ") or Ollama's store (" +
		os.Getenv("OLLAMA_MODELS") + ")\n"
	for filter, want := range map[string]string{
		"":  "no GGUF models" + in,
		"x": `no GGUF models with "x" in their names` + in,
	} {
		if out, errs, code := called("model", "list", "--local", filter); out != want || code != 0 {
			t.Errorf("%q: exit code %d: %s%s", filter, code, out, errs)
		}
	}
}
