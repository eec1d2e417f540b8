package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"llmparity/internal/kit/whole"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/tiny"
)

// The alignment of the source file is not copied.
func TestConvertedFilesAreReadable(t *testing.T) {
	lightTest(t)
	f, err := gguf.Open(tinyOf(t).Path)
	check(t, err)
	defer f.Close()
	aligned := append(slices.Clone(f.Metadata), gguf.Entry{Key: "general.alignment", Value: uint32(64)},
		gguf.Entry{Key: "general.quantization_version", Value: uint32(2)})
	var b strings.Builder
	check(t, gguf.Write(&b, gguf.AsFloat32(aligned), f.Unquantised()))
	_, err = models.Open(t.Context(), put(t, t.TempDir(), "out.gguf", b.String()), 0)
	check(t, err)
}

func TestConvertPackageToGGUF(t *testing.T) {
	lightTest(t)
	cmd := program(t, "model", "convert", "in", "--to", "gguf", "-o", "out")
	in, dir := filepath.Join(cmd.Dir, "in.gguf"), filepath.Join(cmd.Dir, "in")
	check(t, tiny.WriteFile(in))
	if _, err := mlc.Write(t.Context(), in, dir, mlc.Options{}); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := well(t, cmd)
	if stderr != "compared with the package: same weights, bit for bit\n" ||
		!strings.HasPrefix(stdout, filepath.Join("out", "in.gguf")+"  ") {
		t.Errorf("%s%s", stdout, stderr)
	}
	m, err := models.Open(t.Context(), filepath.Join(cmd.Dir, "out", "in.gguf"), 0)
	check(t, err)
	if m.Name != "in" || m.Format != models.GGUF || m.Layers != 2 || m.Unsupported != nil {
		t.Errorf("%+v", m)
	}
}

// llama.cpp's rule of this pre-tokenizer differs from the model's.
func TestConvertNotesOtherTokens(t *testing.T) {
	lightTest(t)
	root := t.TempDir()
	in, dir := filepath.Join(root, "in.gguf"), filepath.Join(root, "in")
	check(t, tiny.WriteRandomFile(t.Context(), in, tiny.Spec{Tokenizer: "smollm"}))
	put(t, root, "in.gguf", strings.ReplaceAll(readFile(t, in), "smollm", gguf.PreGPT4o))
	_, err := mlc.Write(t.Context(), in, dir, mlc.Options{})
	check(t, err)
	well(t, program(t, "model", "convert", dir, "--to", "gguf"), "llama.cpp cuts words at combining marks")
}

func TestConvertWritesRequestedPackage(t *testing.T) {
	browserTest(t)
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
		mentions(t, infoOf(t, path).Engines["webllm"].Can, "if the WebGPU adapter has shader-f16")
	}
}

// rewrite copies a model with changed or added metadata.
func rewrite(t *testing.T, from, to string, entries ...gguf.Entry) {
	t.Helper()
	check(t, rewritten(from, to, entries...))
}

func rewritten(from, to string, entries ...gguf.Entry) error {
	f, err := gguf.Open(from)
	if err != nil {
		return err
	}
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
	return whole.Write(to, func(w io.Writer) error { return gguf.Write(w, metadata, f.Unquantised()) })
}
