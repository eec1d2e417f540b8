package browser

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/mlc"
	"llmparity/internal/modellib"
	"llmparity/internal/record"
	"llmparity/internal/tiny"
)

// window is the context that the tests' model is given.
const window = 512

// files is what the tests' model lies in; TestMain removes the folder.
var files struct {
	once sync.Once
	dir  string
	pack Package
	err  error
}

// tinyModel is the tiny model, packaged once for all tests. Its library comes from the cache, or is compiled.
func tinyModel(t testing.TB) (Config, engine.Model) {
	t.Helper()
	files.once.Do(func() {
		if files.dir, files.err = os.MkdirTemp("", "browser-test-*"); files.err == nil {
			files.pack, files.err = pack(files.dir, window, func(s string) { t.Log(s) })
		}
	})
	if files.err != nil {
		t.Fatal(files.err)
	}
	c := Config{Package: func(context.Context, engine.Model, Target, func(string)) (Package, error) {
		return files.pack, nil
	}}
	return c, engine.Model{Path: filepath.Join(files.dir, "tiny.gguf"),
		Model: record.Model{Name: tiny.Name, Context: window}}
}

func pack(dir string, window int, say func(string)) (Package, error) {
	path := filepath.Join(dir, "tiny.gguf")
	if err := tiny.WriteFile(path); err != nil {
		return Package{}, err
	}
	return packFile(path, filepath.Join(dir, "package"), tiny.Name, window, say)
}

// packFile makes a package of a GGUF, with a library for the software adapter.
func packFile(path, dir, name string, window int, say func(string)) (Package, error) {
	ctx := context.Background()
	p, err := mlc.Write(ctx, path, dir, mlc.Options{ContextWindow: window})
	if err != nil {
		return Package{}, err
	}
	lib, err := modellib.Build(ctx, modellib.FindTools(cache.Dir(os.Getenv), os.Getenv), p.Shape,
		modellib.Variant{Kernels: "software", Sort: "partial"}, say)
	if err != nil {
		return Package{}, err
	}
	return Package{Dir: p.Dir,
		Library: Library{Path: lib.Path, SHA256: lib.SHA256, Origin: Ours, Kernels: SoftwareKernels},
		ID:      name, DType: F32,
		Context: p.Shape.ContextWindowSize, PrefillChunk: p.Shape.PrefillChunkSize}, nil
}
