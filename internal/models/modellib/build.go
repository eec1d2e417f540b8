// Package modellib compiles the WebAssembly library that WebLLM needs beside a model's weights, once per shape.
// Libraries are cached under a key that needs no tools, so a machine with a filled cache needs neither Python nor
// Emscripten.
//
// The kernels are our own, in two variants: for adapters that run on a CPU, and for GPUs. A third variant is scheduled
// as MLC schedules its libraries. Figures measured with ours do not describe MLC's kernels, and records say so. Only
// float32 and float16 are supported, and the architectures of package gguf.
package modellib

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"llmparity/assets/modellib"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/whole"
)

// Library is a compiled model library.
type Library struct {
	Path   string // in the cache
	SHA256 string
}

// Key identifies the library for s and v: a hash of the compiler's sources, the shape and the variant.
func Key(s Shape, v Variant) string {
	h := sha256.New()
	// Reading embedded files and encoding numbers and strings cannot fail.
	_ = fs.WalkDir(modellib.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(modellib.Files, path)
		fmt.Fprintf(h, "%s %d\n", path, len(content))
		h.Write(content)
		return err
	})
	_ = json.NewEncoder(h).Encode(s)
	_ = json.NewEncoder(h).Encode(v)
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Ready reports whether Build can succeed: the library is cached, or the tools are there.
func (t Tools) Ready(s Shape, v Variant) error {
	if _, err := os.Stat(t.kept(s, v)); err == nil {
		return nil
	}
	return t.check()
}

func (t Tools) kept(s Shape, v Variant) string {
	return filepath.Join(t.Cache, "modellib", Key(s, v)+".wasm")
}

// Build returns the library for s and v, compiling it if it is not cached, which takes seconds, or about a minute the
// first time. say receives progress. Concurrent builds are safe. When ctx ends, so do all processes.
func Build(ctx context.Context, t Tools, s Shape, v Variant, say func(string)) (Library, error) {
	lib := Library{Path: t.kept(s, v)}
	var err error
	if lib.SHA256, err = cache.HashFile(lib.Path); !errors.Is(err, fs.ErrNotExist) {
		return lib, err
	}
	if err := t.check(); err != nil {
		return Library{}, err
	}
	if err := cache.MkdirAll(filepath.Dir(lib.Path)); err != nil {
		return Library{}, err
	}
	if err := compile(ctx, t, s, v, lib.Path, say); err != nil {
		return Library{}, fmt.Errorf("compile model library: %w", err)
	}
	lib.SHA256, err = cache.HashFile(lib.Path)
	return lib, err
}

// compile copies the compiler to a temporary folder and runs it there.
func compile(ctx context.Context, t Tools, s Shape, v Variant, out string, say func(string)) error {
	work, err := child.Scratch("modellib")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // otherwise swept later
	program := filepath.Join(work, "program")
	if err := os.CopyFS(program, modellib.Files); err != nil {
		return fmt.Errorf("copy the compiler: %w", err)
	}
	shapeFile := filepath.Join(work, "shape.json")
	if err := whole.JSON(shapeFile, s); err != nil {
		return err
	}
	kept, err := filepath.Abs(filepath.Dir(out))
	if err != nil {
		return err
	}
	// No bytecode beside the sources, and no Python settings of the user.
	cmd := exec.Command(t.Python, "-B", "-E", "-s", filepath.Join(program, "compile.py"),
		"--shape", shapeFile, "--kernels", v.Kernels, "--sort", v.Sort, "--emcc", t.Emcc,
		"--cache", kept, "--out", filepath.Join(kept, filepath.Base(out)))
	cmd.Env = append(os.Environ(), "TMPDIR="+work)
	cmd.Dir = work
	return run(ctx, cmd, out+".log", say)
}
