// Package mlc converts a GGUF of a supported architecture to a WebLLM model package: weights, tokenizer and settings,
// in the layout of WebLLM 0.2.86. The code is in a separate model library (package modellib).
//
// Weights keep the bits of their type where it has a form, or become float32 or float16. Unknown chat templates produce
// a warning, because raw prompts still work. A tensor larger than a shard gets a shard of its own, because records
// cannot be split. Conversion keeps a few MiB of weights per core in memory.
package mlc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/regular"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc/vocab"
	"llmparity/internal/models/modellib"
)

// Options are the settings of a package.
type Options struct {
	ContextWindow int    // in tokens; 0: the model's maximum
	PrefillChunk  int    // in tokens; 0: 128, or the context window if smaller
	DType         string // of activations and decoded weights: Float32 (or "") or Float16
	KVDType       string // of the KV cache; "": DType
	Weights       string // AsIs (the bits of types that have a form), Requantized, Float32, Float16; "": DType
	Library       string // model library to copy into the package as LibraryName; "": none
	SHA256        string // expected hash of the GGUF; "": any
}

const defaultChunk = 128

// Version is part of the names of cached packages. Raise it when Write changes its output.
const Version = 4

// Package describes a written package.
type Package struct {
	Dir      string
	Shape    modellib.Shape
	Warnings []string // differences from the GGUF, and between engines that run it
}

// configName identifies a package, and is written last.
const configName = "mlc-chat-config.json"

// LibraryName is the file name of a package's model library.
const LibraryName = "lib.wasm"

// Write converts the GGUF at path to a package in the folder dir, which appears when it is complete. An older package
// or an empty folder is replaced; another folder is an error.
func Write(ctx context.Context, path, dir string, options Options) (Package, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return Package{}, err
	}
	defer f.Close()
	m, err := newModel(f, options)
	if err != nil {
		return Package{}, err
	}
	if err := replaceable(dir); err != nil {
		return Package{}, err
	}
	aside, err := whole.NewFolder(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return Package{}, unwritable(err, dir)
	}
	defer aside.Remove()
	if err := f.RequireHash(ctx, options.SHA256); err != nil {
		return Package{}, err
	}
	p, err := m.write(ctx, aside.Path)
	if err == nil {
		err = whole.Replace(aside.Path, dir)
	}
	if err != nil {
		return Package{}, unwritable(err, dir)
	}
	p.Dir = dir
	return p, nil
}

// model is what is known before weights are read.
type model struct {
	file         *gguf.File
	architecture gguf.Architecture
	shape        modellib.Shape
	dtype        floats
	library      string
}

func newModel(f *gguf.File, options Options) (model, error) {
	m, err := describe(f, options)
	if err != nil {
		return m, err
	}
	return m, f.RequireReadable()
}

// describe reads what the weights are described by.
func describe(f *gguf.File, options Options) (m model, err error) {
	m.file, m.library = f, options.Library
	if m.architecture, err = f.Architecture(); err != nil {
		return m, err
	}
	if m.dtype, err = floatsOf(options.DType); err != nil {
		return m, err
	}
	m.shape, err = m.shaped(options)
	return m, err
}

// write writes the package's files into dir.
func (m model) write(ctx context.Context, dir string) (Package, error) {
	p := Package{Shape: m.shape, Warnings: Warnings(m.shape)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var vocabulary gguf.Vocabulary
	tokenized := make(chan error, 1) // in parallel: a large vocabulary takes a while
	go func() {
		var err error
		if vocabulary, err = writeTokenizer(m.file, filepath.Join(dir, vocab.Name)); err != nil {
			cancel(err)
		}
		tokenized <- err
	}()
	cache, err := writeShards(ctx, m, dir)
	if err = cmp.Or(<-tokenized, err); err != nil {
		return p, err
	}
	if m.library != "" {
		if err := copyFile(m.library, filepath.Join(dir, LibraryName)); err != nil {
			return p, err
		}
	}
	config, knownTemplate := chatConfig(m.shape, cmp.Or(m.shape.Quantization, m.dtype.quantization()), vocabulary)
	if !knownTemplate {
		p.Warnings = append(p.Warnings,
			"unknown chat template: use raw prompts, because chats would be formatted differently")
	}
	if err := writeJSON(filepath.Join(dir, "tensor-cache.json"), cache); err != nil {
		return p, err
	}
	return p, cmp.Or(writeJSON(filepath.Join(dir, configName), config), os.Chmod(dir, 0o755))
}

func writeTokenizer(f *gguf.File, path string) (gguf.Vocabulary, error) {
	v, err := f.Vocabulary()
	if err == nil {
		err = writeJSON(path, vocab.Of(v))
	}
	return v, err
}

// Warnings lists settings of a model that llama.cpp ignores.
func Warnings(s modellib.Shape) []string {
	n := s.SlidingWindowSize
	if n == 0 || len(s.LocalLayers) > 0 { // llama.cpp ignores only windows of all layers
		return nil
	}
	return []string{fmt.Sprintf("the model has a sliding window of %d tokens (%s.attention.sliding_window), which llama.cpp "+
		"ignores: output differs in longer texts; use a context of %d", n, s.ModelType, n)}
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return fault.Wrap(fault.Unwritable, regular.Cause(err), "compile it again", "cannot read model library %s",
			from)
	}
	return os.WriteFile(to, b, 0o644)
}

func writeJSON(path string, content any) error {
	b, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// replaceable reports whether dir is missing, empty, or a package.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unwritable(err, dir)
	case len(entries) == 0:
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, configName)); err != nil {
		return fault.New(fault.Unwritable, "choose another folder", "%s is not empty and not a model package", dir)
	}
	return nil
}

// unwritable makes an error of the file system one that the user can act on.
func unwritable(err error, dir string) error {
	return fault.WriteError(err, dir, "choose another folder")
}
