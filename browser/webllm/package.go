package webllm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/mlc"
	"llmparity/internal/models/modellib"
	"llmparity/internal/record"
)

// Package is a model in WebLLM's format.
type Package struct {
	Dir          string // mlc-chat-config.json, tensor-cache.json, shards, tokenizer
	ID           string
	DType        string // F32 or F16, of activations
	KVDType      string // of the KV cache
	NeedsF16     bool   // of the adapter
	Library      Library
	Policy       map[string]string // how it was made: kv_dtype …
	Weights      record.Sameness   // with those of its GGUF; empty: it is not made from one
	Warnings     []record.Warning  // for every run with it
	Context      int               // tokens
	PrefillChunk int
	Overrides    map[string]any // of mlc-chat-config.json
	held         *os.File       // keeps a package in the cache while this process may use it
}

// Target is what a package is made for.
type Target struct {
	Kernels string // one of the kernels below, but AutoKernels
	DType   string // F32 or F16, of activations
	KVDType string // of the KV cache
}

// Kernels and dtypes of model libraries.
const (
	AutoKernels     = "auto" // by the adapter
	SoftwareKernels = "software"
	GPUKernels      = "gpu"
	MLCKernels      = record.MLCKernels // for GPUs, as MLC's compiler schedules them
	F32             = "f32"
	F16             = "f16"
)

// prefillChunk is how many prompt tokens the library processes at a time, limited by the context.
const prefillChunk = 128

// PackageOptions returns the options of a model's package and library. dtype is that of activations, kv that of the
// KV cache.
func PackageOptions(context int, dtype, kv, weights string) mlc.Options {
	return mlc.Options{ContextWindow: context, PrefillChunk: min(prefillChunk, context),
		DType: named[cmp.Or(dtype, F32)], KVDType: named[kv], Weights: cmp.Or(named[weights], mlc.AsIs)}
}

// named are MLC's names of dtypes.
var named = map[string]string{F32: mlc.Float32, F16: mlc.Float16, mlc.Requantized: mlc.Requantized}

// variant returns the library's variant for a target.
func (c Config) variant(t Target) modellib.Variant {
	return modellib.Variant{Kernels: t.Kernels, Sort: cmp.Or(c.Sort, "partial")}
}

// make makes a package with its library in the cache, unless it is there.
func (w *WebLLM) make(ctx context.Context, m models.Model, t Target, say func(string)) (Package, error) {
	b, err := w.bundle(ctx, say)
	if err != nil {
		return Package{}, err
	}
	if m.Format == models.WebLLM {
		return w.packaged(ctx, m, b, say)
	}
	f, err := gguf.OpenReadable(m.Path)
	if err != nil {
		return Package{}, err
	}
	defer f.Close()
	options := PackageOptions(m.Context, t.DType, t.KVDType, w.config.weights())
	shape, err := mlc.Shape(f, options)
	if err != nil {
		return Package{}, err
	}
	made := Package{ID: m.Name, DType: t.DType, KVDType: t.KVDType, Context: m.Context,
		NeedsF16: slices.Contains([]string{t.DType, t.KVDType, w.config.weights()}, F16),
		Policy:   map[string]string{"kv_dtype": t.KVDType, "activations_dtype": t.DType}}
	// The library comes first: if it cannot be made, the package would be written in vain.
	lib, described, err := w.library(ctx, f, options, shape, b, t, say)
	if err != nil {
		return Package{}, err
	}
	made.Library, made.PrefillChunk = described, lib.PrefillChunkSize // WebLLM uses the library's
	made.Dir = filepath.Join(w.settings.Cache, "packages", fmt.Sprintf("%s-v%d-c%d-p%d-%s-%s-%s", m.SHA256[:12],
		mlc.Version, m.Context, options.PrefillChunk, t.DType, t.KVDType, cmp.Or(w.config.weights(), mlc.AsIs)))
	if _, missing := os.Stat(made.Dir); missing != nil {
		say(fmt.Sprintf("converting %s to a WebLLM package for a context of %d tokens", m.Name, m.Context))
		err = cache.Once(ctx, w.settings.Cache, made.Dir, bytesOf(lib.Params), say, func() error {
			return written(ctx, m, made.Dir, options, say)
		})
	} else {
		err = stillOf(made.Dir, lib, m)
	}
	if err != nil {
		return Package{}, err
	}
	if err := otherArithmetic(&made, f, options, m.DType); err != nil {
		return Package{}, err
	}
	for _, text := range mlc.Warnings(shape) {
		made.Warnings = append(made.Warnings, record.Warning{Code: "engines-differ", Text: text})
	}
	return made, nil
}

// stillOf checks that a cached package and the library belong to the same model. They do not if the model's file was
// replaced after it was hashed.
func stillOf(dir string, lib mlc.Library, m models.Model) error {
	existing, err := mlc.OpenPackage(dir)
	if err != nil {
		return fault.Wrap(fault.BadModel, err, "delete it; it will be made again",
			"the model's package in the cache cannot be used")
	}
	if err := lib.MatchesPackage(existing); err != nil {
		return fault.Wrap(fault.BadModel, err, "leave it unchanged during a run, and try again",
			"model %s was replaced, or its package changed", m.Path)
	}
	return nil
}

// library opens the library that the user named, MLC's or the compiled one, and checks that it fits the model.
func (w *WebLLM) library(ctx context.Context, f *gguf.File, options mlc.Options, shape modellib.Shape, b Bundle,
	t Target, say func(string)) (lib mlc.Library, l Library, err error) {
	have, err := mlc.Params(f, options)
	if err != nil {
		return lib, l, err
	}
	file := w.config.given()
	source := file
	if w.config.auto() {
		file, source = w.replacement(b, func(l mlc.Library) error { return l.Replaces(have, shape) })
	}
	if file == "" {
		if err := b.Fits(mlc.OwnImports()); err != nil { // before it is compiled
			return lib, l, err
		}
		built, err := Compile(ctx, w.settings.Cache, f, options, w.config.variant(t), say)
		if err != nil {
			return lib, l, err
		}
		file = built.Path
	}
	if lib, l, err = w.openLibrary(ctx, file, source, b, say); err != nil {
		return lib, l, err
	}
	return lib, l, lib.Matches(have, shape)
}

// Compile compiles the model's library, unless it is in the cache.
func Compile(ctx context.Context, dir string, f *gguf.File, options mlc.Options, v modellib.Variant,
	say func(string)) (modellib.Library, error) {
	shape, err := mlc.Shape(f, options)
	if err != nil {
		return modellib.Library{}, err
	}
	return modellib.Build(ctx, modellib.FindTools(dir, os.Getenv), shape, v, say)
}

// otherArithmetic notes what became of the weights, and warns if WebLLM does not compute on the stored ones.
func otherArithmetic(p *Package, f *gguf.File, options mlc.Options, stored string) error {
	weights, err := mlc.WeightsOf(f, options)
	if err != nil {
		return err
	}
	p.Policy["weights_dtype"], p.Weights = weights.DType, weights.Same
	if weights.Kept {
		p.Policy["weights_dtype"] = stored
	}
	switch weights.Same {
	case record.SameBits:
	case record.SameValues:
		p.warn(fmt.Sprintf("the model's weights are %s: WebLLM dequantises them to %s; a native engine uses the stored ones "+
			"with rounded activations, so greedy tokens may differ", stored, weights.DType))
	default:
		p.warn(fmt.Sprintf("the model's weights are %s: WebLLM rounds %s; a native engine uses the stored ones, so greedy "+
			"tokens may differ", stored, weights.Rounded))
	}
	if p.DType == F16 {
		p.warn("WebLLM computes with activations in f16; a native engine has other activations, so greedy " +
			"tokens may differ")
	}
	return nil
}

func (p *Package) warn(text string) {
	p.Warnings = append(p.Warnings, record.Warning{Code: "weights-differ", Text: text})
}

func bytesOf(weights []mlc.Param) (n int64) {
	for _, p := range weights {
		size, _ := mlc.StoredBytes(p.DType, "", p.Shape) // 0 if a dimension is variable
		n += size
	}
	return n
}

// written writes a package and reports what became of its model.
func written(ctx context.Context, m models.Model, target string, options mlc.Options, say func(string)) error {
	options.SHA256 = m.SHA256 // identifies the package in the cache
	p, err := mlc.Write(ctx, m.Path, target, options)
	for _, w := range p.Warnings {
		say(w)
	}
	return err
}

// Write writes a GGUF's package to a folder, with its library as lib.wasm.
func Write(ctx context.Context, m models.Model, target string, c Config, s engine.Settings, say func(string)) error {
	f, err := gguf.OpenReadable(m.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	// The package may be for another machine, so float16 needs no adapter here. Kernels depend on the adapter, unless
	// they are chosen.
	of := s
	of.DType = F32
	t, err := New(c, of).Target(ctx, say)
	if err != nil {
		return err
	}
	// The library comes first: if it cannot be compiled, the package would be written in vain.
	options := PackageOptions(m.Context, s.DType, s.KVDType, c.weights())
	weights, err := mlc.Params(f, options)
	if err != nil {
		return err
	}
	if err := cache.Free(filepath.Dir(target), bytesOf(weights), "name another folder"); err != nil {
		return err
	}
	lib, err := Compile(ctx, s.Cache, f, options, c.variant(t), say)
	if err != nil {
		return err
	}
	options.Library = lib.Path
	return written(ctx, m, target, options, say)
}

// stamp shows that a file has not changed since it was read.
type stamp struct {
	bytes   int64
	changed time.Time
}

// intact verifies the weights against the package's own list, because WebLLM does not. Each file is read once, before
// anything is measured, and again only after a change.
func (w *WebLLM) intact(ctx context.Context, p Package) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	existing, err := mlc.OpenPackage(p.Dir) // checks sizes
	if err != nil {
		return engine.Fail(record.Download, "the model package: %w", err)
	}
	changed := map[string]stamp{}
	var unread []mlc.Shard
	for _, s := range existing.Shards {
		path := filepath.Join(p.Dir, s.File)
		info, err := os.Stat(path)
		if err != nil {
			return engine.Fail(record.Download, "the model package: %w", err)
		}
		if is := (stamp{info.Size(), info.ModTime()}); w.read[path] != is {
			changed[path], unread = is, append(unread, s)
		}
	}
	if err := mlc.Intact(ctx, p.Dir, unread); err != nil {
		return engine.Fail(record.Download, "the model package: %w", err)
	}
	maps.Copy(w.read, changed)
	return nil
}
