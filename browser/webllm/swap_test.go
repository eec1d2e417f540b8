package webllm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"llmparity/internal/cache"
	"llmparity/internal/check"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/model"
	"llmparity/internal/modellib"
	"llmparity/internal/tiny"
)

// The cache identifies a package by its model's hash, so a replaced model is not cached under the old one.
func TestReplacedModelIsNotCached(t *testing.T) {
	const context = 1024
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	check.Err(t, tiny.WriteFile(path))
	f, err := gguf.Open(path)
	check.Err(t, err)
	defer f.Close()
	variant := modellib.Variant{Kernels: SoftwareKernels, Sort: "partial"}
	lib, err := Compile(t.Context(), cache.Dir(os.Getenv), f, Options(context, F32, "", ""), variant,
		func(s string) { t.Log(s) })
	check.Err(t, err)
	w := New(Config{Library: lib.Path}, engine.Settings{Cache: t.TempDir()})
	m, err := model.Open(path, context)
	check.Err(t, err)
	text := check.Read(t, path)
	text[len(text)-1] ^= 1
	check.Err(t, os.WriteFile(path, text, 0o644))
	target := Target{Kernels: SoftwareKernels, DType: F32}
	if _, err := w.make(t.Context(), m, target, func(string) {}); fault.Of(err) != fault.BadModel ||
		!strings.Contains(err.Error(), "was replaced") {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.settings.Cache, "packages", "*")); len(left) > 0 {
		t.Errorf("the cache has %v", left)
	}
	again, err := model.Open(path, context)
	check.Err(t, err)
	if made, err := w.make(t.Context(), again, target, func(string) {}); err != nil ||
		!strings.Contains(made.Dir, again.SHA256[:12]) {
		t.Errorf("with its new hash: %s: %v", made.Dir, err)
	}
}
