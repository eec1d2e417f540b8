//go:build slow

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/host/cache"
	"llmparity/native/huggingface"
	"llmparity/native/llamacpp"
)

// foldedOf returns the folded stacks that a profile wrote.
func foldedOf(t *testing.T, cmd *exec.Cmd, engine string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cmd.Dir, "results", "profile-*", engine+".folded"))
	check(t, err)
	if len(found) != 1 {
		t.Fatalf("%q of stacks", found)
	}
	return readFile(t, found[0])
}

// Without perf, operators are timed all the same.
func TestProfileWithoutPerf(t *testing.T) {
	cmd := program(t, "profile", "--engines", llamacpp.Name, "--max-tokens", "8")
	cmd.Env = append(cmd.Env, "PATH="+t.TempDir())
	well(t, cmd, "no stacks: stacks are sampled with perf, which is not here", "rows do not need them", "of the clock")
	found, err := filepath.Glob(filepath.Join(cmd.Dir, "results", "profile-*", "profile.csv"))
	check(t, err)
	if text := readFile(t, found[0]); !strings.Contains(text, `,head,"MUL_MAT result_output f32`) {
		t.Error(text)
	}
}

// A program without symbols has one name in its stacks, and a note says why.
func TestProfileOfAStrippedProgram(t *testing.T) {
	path, err := llamacpp.Find(llamacpp.Config{Cache: cache.Dir(os.Getenv)})
	check(t, err)
	cmd := program(t, "profile", "--engines", llamacpp.Name, "--max-tokens", "48", "--llama-server", "./llama-server")
	check(t, exec.Command("strip", "-o", filepath.Join(cmd.Dir, "llama-server"), path).Run())
	well(t, cmd, "of samples are in llama-server, which has no symbols", "has no llmparity-operators beside it")
	if text := foldedOf(t, cmd, llamacpp.Name); strings.Contains(text, "ggml_vec_dot") ||
		!strings.Contains(text, "[llama-server]") {
		t.Error(text)
	}
}

// Functions of Python have those of torch below them.
func TestProfileOfPython(t *testing.T) {
	cmd := program(t, "profile", "--engines", huggingface.Name, "--max-tokens", "48")
	well(t, cmd)
	text := foldedOf(t, cmd, huggingface.Name)
	for line := range strings.Lines(text) {
		_, below, ok := strings.Cut(line, "modeling_llama.py)")
		if ok && strings.Contains(below, "libtorch") {
			return
		}
	}
	t.Errorf("no function of torch below one of Python; py-spy is put there by `scripts/setup py-spy`:\n%s", text)
}
