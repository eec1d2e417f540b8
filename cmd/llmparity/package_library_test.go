package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models/tiny"
	"llmparity/internal/record"
)

// madePackage converts the tiny model, or a random one.
func madePackage(t *testing.T, name string, model func(path string) error, flags ...string) string {
	t.Helper()
	cmd := program(t, append([]string{"model", "convert", name + ".gguf", "--to", "webllm", "--kernels", "software"},
		flags...)...)
	check(t, model(filepath.Join(cmd.Dir, name+".gguf")))
	well(t, cmd)
	made, err := filepath.Glob(filepath.Join(cmd.Dir, name+"-webllm*"))
	if err != nil || len(made) != 1 {
		t.Fatalf("%v (%v): one package is wanted", made, err)
	}
	return made[0]
}

// A model library of another model is refused before anything starts.
func TestPackageWithOtherLibraryIsRefused(t *testing.T) {
	browserTest(t)
	t.Parallel()
	long, short := madePackage(t, "long", tiny.WriteFile), madePackage(t, "short", tiny.WriteFile, "--context", "100")
	half := madePackage(t, "half", tiny.WriteFile, "--dtype", "f16")
	lib := filepath.Join(short, "lib.wasm")
	run := func(args ...string) *exec.Cmd {
		return program(t, append([]string{"run", "-q", "--engines", "webllm", "--repetitions", "1", "--model"},
			args...)...)
	}
	refuses(t, run(long, "--model-lib", lib), fault.BadLibrary, "its context window is 100, but 1024 is needed")
	line := refuses(t, run(half, "--adapter", "swiftshader"), fault.NoF16, "q0f16", "float32 weights")
	if strings.Contains(line, "--dtype") {
		t.Errorf("advice that can't help: %q", line)
	}
	// Two of them, and then the wrong one alone.
	put(t, long, "other.wasm", readFile(t, lib))
	refuses(t, run(long), fault.BadLibrary, "lib.wasm, other.wasm", "--model-lib")
	check(t, os.Rename(filepath.Join(long, "other.wasm"), filepath.Join(long, "lib.wasm")))
	refuses(t, run(long), fault.BadLibrary, "its context window is 100, but 1024 is needed")
	if a := infoOf(t, long).Engines["webllm"]; a.Can != "" || !strings.Contains(a.Cannot, "its context window is 100") {
		t.Errorf("of a package with a library of another context it says %+v", a)
	}
}

// A package with a sliding window keeps to the context window asked for.
func TestPackageWithWindowKeepsToContext(t *testing.T) {
	browserTest(t)
	t.Parallel()
	dir := madePackage(t, "window", func(path string) error {
		return tiny.WriteRandomFile(t.Context(), path, tiny.Spec{Window: 8})
	}, "--context", "128")
	cmd := oneLaunch(t, "webllm", "-q", "--model", dir, "--context", "64")
	well(t, cmd)
	r := recorded(t, cmd.Dir)
	const pages = 64/16 + 1
	m := r.Cells[0].Model
	want := float64(2 * 4 * m.Layers * m.KVHeads * m.HeadDim * 16 * pages)
	for _, a := range r.Attempts {
		got := slices.Collect(maps.Values(a.AtEdge(record.Load, "webgpu_ledger", "kv_reserved_bytes")))
		if m.Context != 64 || !slices.Equal(got, []float64{want}) {
			t.Errorf("a context of %d is recorded, KV caches of %v bytes, want %.0f", m.Context, got, want)
		}
	}
}
