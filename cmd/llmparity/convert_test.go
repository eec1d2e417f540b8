package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
	"llmparity/internal/model"
	"llmparity/internal/tiny"
	"llmparity/internal/whole"
)

func TestConvertKeepsValues(t *testing.T) {
	cmd := program(t, "model", "convert", "in.gguf", "--to", "gguf", "-o", "out")
	check(t, tiny.WriteFile(filepath.Join(cmd.Dir, "in.gguf")))
	stdout, stderr, code := output(t, cmd)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	// The tiny model is float32 already: what is written is what was read, to the byte.
	if want := filepath.Join("out", "in-f32.gguf") + "  " + tiny.SHA256; strings.TrimSpace(stdout) != want {
		t.Errorf("%s, want %s", stdout, want)
	}
	entries, err := os.ReadDir(filepath.Join(cmd.Dir, "out"))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v: one file is wanted", entries, err)
	}
}

// The alignment of the source file is not copied.
func TestConvertedFilesAreReadable(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.gguf"), filepath.Join(dir, "out.gguf")
	check(t, tiny.WriteFile(in))
	f, err := gguf.Open(in)
	check(t, err)
	defer f.Close()
	aligned := append(slices.Clone(f.Metadata),
		gguf.Entry{Key: "general.alignment", Value: uint32(64)},
		gguf.Entry{Key: "general.quantization_version", Value: uint32(2)})
	check(t, whole.Write(out, func(w io.Writer) error {
		return gguf.Write(w, gguf.AsFloat32(aligned), f.Unquantised())
	}))
	if _, err := model.Open(out, 0); err != nil {
		t.Error(err)
	}
}

func TestConvertPackageToGGUF(t *testing.T) {
	cmd := program(t, "model", "convert", "in", "--to", "gguf", "-o", "out")
	in, dir := filepath.Join(cmd.Dir, "in.gguf"), filepath.Join(cmd.Dir, "in")
	check(t, tiny.WriteFile(in))
	if _, err := mlc.Write(t.Context(), in, dir, mlc.Options{}); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := output(t, cmd)
	if code != 0 || stderr != "compared with the package: same weights, bit for bit\n" ||
		!strings.HasPrefix(stdout, filepath.Join("out", "in.gguf")+"  ") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	m, err := model.Open(filepath.Join(cmd.Dir, "out", "in.gguf"), 0)
	check(t, err)
	if m.Name != "in" || m.Format != model.GGUF || m.Layers != 2 || m.Unsupported != nil {
		t.Errorf("%+v", m)
	}
}

// llama.cpp's rule of this pre-tokenizer differs from the model's.
func TestConvertNotesOtherTokens(t *testing.T) {
	root := t.TempDir()
	in, dir := filepath.Join(root, "in.gguf"), filepath.Join(root, "in")
	check(t, tiny.WriteRandomFile(t.Context(), in, tiny.Spec{Tokenizer: "smollm"}))
	check(t, os.WriteFile(in, []byte(strings.ReplaceAll(readFile(t, in), "smollm", gguf.PreGPT4o)), 0o600))
	_, err := mlc.Write(t.Context(), in, dir, mlc.Options{})
	check(t, err)
	if _, stderr, code := called("model", "convert", dir, "--to", "gguf", "-o", root+"/out"); code != 0 ||
		!strings.Contains(stderr, "llama.cpp cuts words at combining marks") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestConvertWritesRequestedPackage(t *testing.T) {
	t.Parallel()
	cmd := program(t, "model", "convert", "in.gguf", "--to", "webllm", "--dtype", "f16", "--kernels", "gpu", "--sort",
		"full")
	check(t, tiny.WriteFile(filepath.Join(cmd.Dir, "in.gguf")))
	well(t, cmd)
	made, err := mlc.OpenPackage(filepath.Join(cmd.Dir, "in-webllm-f16"))
	check(t, err)
	lib, err := mlc.OpenLibrary(made.Library)
	check(t, err)
	if err := lib.MatchesPackage(made); err != nil || made.Quantization != "q0f16" || lib.Own == nil ||
		lib.Own.String() != "gpu kernels, full sort" {
		t.Errorf("%v: package %s, library %v", err, made.Quantization, lib.Own)
	}
	// What can be done with either depends on the adapter.
	for _, path := range []string{filepath.Join(cmd.Dir, "in-webllm-f16"), made.Library} {
		if can := infoOf(t, path).Engines["webllm"].Can; !strings.Contains(
			can, "if the WebGPU adapter has shader-f16") {
			t.Errorf("%s: %q", path, can)
		}
	}
}

// rewrite copies a model with changed or added metadata.
func rewrite(t *testing.T, from, to string, entries ...gguf.Entry) {
	t.Helper()
	f, err := gguf.Open(from)
	check(t, err)
	defer f.Close()
	metadata := slices.Clone(f.Metadata)
	for _, e := range entries {
		i := slices.IndexFunc(metadata, func(old gguf.Entry) bool { return old.Key == e.Key })
		if i < 0 {
			metadata = append(metadata, e)
		} else {
			metadata[i] = e
		}
	}
	check(t, whole.Write(to, func(w io.Writer) error { return gguf.Write(w, metadata, f.Unquantised()) }))
}
