// Package model finds the model that a plan or a command names, and says what its file or its package says of itself.
//
// A name is tiny, smollm2, a GGUF file, the folder of a WebLLM package, an id of WebLLM's catalogue, or served:NAME of
// a server. The package can't say whether an engine runs the model: each engine does that.
package model

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"llmparity/internal/cache"
	"llmparity/internal/catalogue"
	"llmparity/internal/engine"
	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
	"llmparity/internal/record"
	"llmparity/internal/tiny"
)

// Names that are no files.
const (
	Tiny    = "tiny"
	SmolLM2 = "smollm2"
	// Served begins the name of a model that only a server has.
	Served = "served:"
)

// GGUF and WebLLM are formats of models.
const (
	GGUF   = "gguf"
	WebLLM = "webllm" // a package
)

// Finder finds models.
type Finder struct {
	Catalogue func() (catalogue.Catalogue, error)
	Mirror    string // where models of the catalogue are fetched from; empty: the public addresses
	// Features gives the WebGPU adapter's. It is asked where a model of the catalogue needs one.
	Features func(context.Context) ([]string, error)
	Say      func(string)
}

// Find gives the model of a name, with a context window of so many tokens; 0 is the model's own. A model of the
// catalogue is fetched unless it is in the store.
func (f Finder) Find(ctx context.Context, name string, window int) (engine.Model, error) {
	rest, served := strings.CutPrefix(name, Served)
	switch {
	case f.Mirror != "" && !Listed(name) && !served:
		return engine.Model{}, NotMirrored(name)
	case served && rest == "":
		return engine.Model{}, fault.New(fault.Usage, "name it as the server does: served:NAME",
			"the model %s has no name", name)
	case served:
		return engine.Model{Model: record.Model{Name: rest, Format: record.Served, Context: window}}, nil
	case Listed(name):
		return f.catalogued(ctx, name, window)
	case IsPackage(name):
		return OpenPackage(name, filepath.Base(filepath.Clean(name)), window)
	}
	path, err := Path(name)
	if err != nil {
		return engine.Model{}, err
	}
	return Open(path, window)
}

// Listed tells whether a name is an id of the catalogue, which may have dots in it, and no file that isn't there.
func Listed(name string) bool {
	if name == Tiny || name == SmolLM2 || strings.HasPrefix(name, Served) || strings.ContainsAny(name, `/\`) ||
		strings.EqualFold(filepath.Ext(name), ".gguf") {
		return false
	}
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// NotMirrored refuses a mirror for what none has.
func NotMirrored(name string) error {
	return fault.New(fault.Usage, "leave it out",
		"--mirror says where a model of WebLLM's catalogue is fetched from, and %s is none", name)
}

// IsPackage tells a folder that holds a WebLLM package, or claims to.
func IsPackage(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// Path is the file of a name that is no package and no server's. The tiny model is made unless it is there.
func Path(name string) (string, error) {
	switch name {
	case Tiny:
		path := filepath.Join(cache.Dir(os.Getenv), "models", tiny.SHA256[:12], "tiny.gguf")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if err := cache.MkdirAll(filepath.Dir(path)); err != nil {
			return "", err
		}
		return path, tiny.WriteFile(path)
	case SmolLM2: // where scripts/setup puts it
		dir := filepath.Join(cache.Dir(os.Getenv), "models", "smollm2")
		found, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
		if err != nil || len(found) != 1 {
			return "", fault.New(fault.BadModel, "run scripts/setup smollm2", "the model smollm2 is not in %s", dir)
		}
		return found[0], nil
	}
	return name, nil
}

// Open reads what a GGUF says of itself. A context of 0 is the longest that the model was made for.
func Open(path string, window int) (engine.Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return engine.Model{}, err
	}
	defer f.Close()
	arch, err := f.Architecture()
	unsupported := err
	if fault.Of(err) == fault.UnknownArch && f.Whole() == nil {
		if known, wrong := outline(f); wrong == nil {
			arch, err = known, nil
		}
	}
	if err != nil {
		return engine.Model{}, err
	}
	if window > arch.ContextLength {
		return engine.Model{}, fault.New(fault.Usage, "",
			"context: %d, the model %s was made for at most %d", window, path, arch.ContextLength)
	}
	file, err := os.Stat(path) // before it is read: what takes its place later is another one
	if err != nil {
		return engine.Model{}, err
	}
	sum, err := cache.HashFile(path)
	if err != nil {
		return engine.Model{}, err
	}
	name, err := f.Text("general.name")
	if err != nil {
		name = filepath.Base(path)
	}
	m := engine.Model{Path: path, File: file, Unsupported: unsupported, Model: record.Model{
		Name: name, SHA256: sum, Format: GGUF, Architecture: arch.Name,
		DType: strings.ToLower(f.Dominant().String()), FileB: f.Size, Context: cmp.Or(window, arch.ContextLength),
		MaxContext: arch.ContextLength, Layers: arch.BlockCount, Heads: arch.HeadCount, KVHeads: arch.HeadCountKV,
		HeadDim: arch.HeadDim, Hidden: arch.EmbeddingLength, Vocab: arch.VocabSize,
	}}
	for _, t := range f.Tensors {
		m.Parameters += t.Elements()
		m.WeightsB += t.Size
	}
	return m, nil
}

// outline is what can be said of a model of any architecture.
func outline(f *gguf.File) (gguf.Architecture, error) {
	e, err := estimate.FromGGUF(f)
	return gguf.Architecture{Name: e.Type, ContextLength: e.MaxContext, BlockCount: e.Layers, HeadCount: e.Heads,
		HeadCountKV: e.KVHeads, HeadDim: e.HeadDim, EmbeddingLength: e.Hidden, VocabSize: e.Vocab}, err
}

// OpenPackage reads what a package says of itself. A context of 0 is the package's own.
func OpenPackage(dir, name string, window int) (engine.Model, error) {
	p, err := mlc.OpenPackage(dir)
	if err != nil {
		return engine.Model{}, err
	}
	longest := p.Longest()
	window = cmp.Or(window, longest)
	if longest > 0 && window > longest {
		return engine.Model{}, fault.New(fault.Usage, "give a smaller --context",
			"context: %d, the package %s was made for at most %d", window, dir, longest)
	}
	// The list has a sum of every shard: its own sum stands for all.
	sum, err := cache.HashFile(filepath.Join(dir, p.List))
	if err != nil {
		return engine.Model{}, err
	}
	return engine.Model{Path: dir, Model: record.Model{
		Name: name, SHA256: sum, Format: WebLLM, Architecture: p.ModelType, DType: p.Quantization, FileB: p.Bytes,
		WeightsB: p.Bytes, Context: window, MaxContext: max(longest, 0), Layers: p.Layers, Heads: p.Heads,
		KVHeads: p.KVHeads, HeadDim: p.HeadDim, Hidden: p.Hidden, Vocab: p.Vocab,
	}}, nil
}

// SHA256 is the sum of the model of a name, as runs take it. Nothing is fetched or made.
func SHA256(name string) (string, error) {
	dir := name
	switch {
	case name == Tiny:
		return tiny.SHA256, nil // it is made wherever it is needed, and checked
	case Listed(name):
		if dir = filepath.Join(store(), name); !IsPackage(dir) {
			return "", fault.New(fault.UnknownModel, "", "%s was not fetched", name)
		}
	case !IsPackage(name):
		path, err := Path(name)
		if err != nil {
			return "", err
		}
		return cache.HashFile(path)
	}
	m, err := OpenPackage(dir, name, 0)
	return m.SHA256, err
}
