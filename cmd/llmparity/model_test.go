package main

import (
	"os"
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
