//go:build slow

package main

import (
	"path/filepath"
	"slices"
	"testing"

	"llmparity/internal/engine/enginetest"
	"llmparity/internal/models/hffolder"
	"llmparity/internal/models/tiny/tinytest"
	"llmparity/internal/record"
)

// A Hugging Face folder runs in every engine, with the same tokens: as it is, or as the GGUF that it becomes.
func TestFolderRunsInEveryEngine(t *testing.T) {
	browserTest(t)
	t.Parallel()
	cmd := oneLaunch(t, "webllm,llamacpp,huggingface", "--model", "Tiny-Folder", "--context", "512",
		"--max-tokens", "24", "--prompt", tinytest.Prompts()[1].Text)
	_, err := hffolder.Write(t.Context(), tinyOf(t).Path, filepath.Join(cmd.Dir, "Tiny-Folder"))
	check(t, err)
	well(t, cmd)
	want, ran := enginetest.Tiny(t, 24)[1].Expected, map[string]bool{}
	r := recorded(t, cmd.Dir)
	for _, a := range r.Attempts {
		said := lastEngine(a)
		for _, q := range a.Measured() {
			ran[said.Name] = true
			if ids := idsOf(q); !slices.Equal(ids, want) {
				t.Errorf("%s: %v, the reference has %v", said.Name, ids, want)
			}
		}
		if said.Weights == record.OtherValues {
			t.Errorf("%s: %s", said.Name, said.Weights)
		}
	}
	if len(ran) != 3 {
		t.Errorf("%v ran", ran)
	}
	mentions(t, details(t, cmd.Dir), "identical: 24 of 24 token ids")
}
