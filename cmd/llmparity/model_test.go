package main

import (
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
)

func TestCatalogueIDsAreNotPaths(t *testing.T) {
	lightTest(t)
	known, err := builtInCatalogue()
	check(t, err)
	for _, e := range known.Models {
		if !models.Listed(e.ID) {
			t.Errorf("%s is taken for a path", e.ID)
		}
	}
	t.Chdir(t.TempDir())
	put(t, ".", "Model-v1.0", "")
	for _, path := range []string{"Model-v1.0", "missing.gguf", "./missing", "/missing", "missing.GGUF"} {
		if models.Listed(path) {
			t.Errorf("%s is taken for an id", path)
		}
	}
}

func TestRandomModel(t *testing.T) {
	lightTest(t)
	cmd := program(t, "model", "random", "--arch", "qwen2", "--layers", "3", "--kv-heads", "1", "--tied", "--context",
		"256", "-o", "made/r.gguf")
	path := filepath.Join("made", "r.gguf")
	if stdout, _ := well(t, cmd); !strings.HasPrefix(stdout, path+"  ") || !strings.HasSuffix(stdout, " parameters\n") {
		t.Error(stdout)
	}
	f, err := gguf.Open(filepath.Join(cmd.Dir, path))
	check(t, err)
	defer f.Close()
	if a, err := f.Architecture(); err != nil || a.Name != gguf.Qwen2 || a.BlockCount != 3 || a.HeadCountKV != 1 ||
		!a.Tied || a.ContextLength != 256 {
		t.Errorf("%+v %v", a, err)
	}
	if info := infoOf(t, filepath.Join(cmd.Dir, path)); info.Architecture != gguf.Qwen2 {
		t.Errorf("%+v", info)
	}
	well(t, program(t, "model", "random", "--rope-factor", "4", "--rope-scaling", "linear", "--window", "0"))
}
