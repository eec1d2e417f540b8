// Package modellib compiles the WebAssembly library that WebLLM needs beside a model's weights, once for a shape:
// libraries are kept in the cache under a key that is known without any tool, so that a machine with a filled cache
// needs neither Python nor Emscripten.
//
// What it compiles are kernels of this project, in two variants, for an adapter computed on a CPU and for a GPU:
// figures taken with them are not figures of MLC's kernels, and a record has to say so. It can't quantise: float32 or
// float16 only, and only the architectures llama and qwen2.
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
	"llmparity/internal/cache"
	"llmparity/internal/child"
)

// Library is a compiled model library.
type Library struct {
	Path   string // in the cache
	SHA256 string
}

// Key names the library for s: a hash of the compiler's program, of the shape and of the variant.
func Key(s Shape, v Variant) string {
	h := sha256.New()
	// Neither the embedded files nor numbers and strings can fail to be read.
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

// Ready tells whether Build would find what it needs: the library itself, or the tools to compile it.
func (t Tools) Ready(s Shape, v Variant) error {
	if _, err := os.Stat(t.kept(s, v)); err == nil {
		return nil
	}
	return t.check()
}

func (t Tools) kept(s Shape, v Variant) string {
	return filepath.Join(t.Cache, "modellib", Key(s, v)+".wasm")
}

// Build returns the library for s and v, compiling it when the cache does not hold it yet: some seconds, and most of a
// minute more the first time. say gets a line now and then. Two builds at once, also by two processes, do no harm. When
// ctx ends, so does all that was started. A library that no call has asked for in 90 days is removed when another is
// compiled.
func Build(ctx context.Context, t Tools, s Shape, v Variant, say func(string)) (Library, error) {
	if err := s.Validate(); err != nil {
		return Library{}, err
	}
	if err := v.Validate(); err != nil {
		return Library{}, err
	}
	lib := Library{Path: t.kept(s, v)}
	dir := filepath.Dir(lib.Path)
	use(ctx, lib.Path)
	if sum, err := cache.HashFile(lib.Path); err == nil {
		lib.SHA256 = sum
		return lib, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Library{}, fmt.Errorf("model library in the cache: %w", err)
	}
	if err := t.check(); err != nil {
		return Library{}, err
	}
	if err := cache.MkdirAll(dir); err != nil {
		return Library{}, err
	}
	if err := compile(ctx, t, s, v, lib.Path, say); err != nil {
		return Library{}, fmt.Errorf("compiling a model library: %w", err)
	}
	sweep(ctx, dir)
	sum, err := cache.HashFile(lib.Path)
	if err != nil {
		return Library{}, fmt.Errorf("compiled model library: %w", err)
	}
	lib.SHA256 = sum
	return lib, nil
}

// compile lays the program out in a temporary folder, where it also works, and runs it.
func compile(ctx context.Context, t Tools, s Shape, v Variant, out string, say func(string)) error {
	work, err := child.Scratch("modellib")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // swept later at the latest
	program := filepath.Join(work, "program")
	if err := os.CopyFS(program, modellib.Files); err != nil {
		return fmt.Errorf("laying out the compiler: %w", err)
	}
	shape, err := json.Marshal(s)
	if err != nil {
		return err
	}
	shapeFile := filepath.Join(work, "shape.json")
	if err := os.WriteFile(shapeFile, shape, 0o600); err != nil {
		return err
	}
	kept, err := filepath.Abs(filepath.Dir(out))
	if err != nil {
		return err
	}
	// No bytecode beside the sources, and nothing of the user's own Python set-up.
	cmd := exec.Command(t.Python, "-B", "-E", "-s", filepath.Join(program, "compile.py"), "--owned",
		"--shape", shapeFile, "--kernels", v.Kernels, "--sort", v.Sort, "--emcc", t.Emcc,
		"--cache", kept, "--out", filepath.Join(kept, filepath.Base(out)))
	cmd.Env = append(os.Environ(), "TMPDIR="+work)
	cmd.Dir = work
	return run(ctx, cmd, out+".log", say)
}
