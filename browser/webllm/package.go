package webllm

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/gguf"
	"llmparity/internal/mlc"
	"llmparity/internal/model"
	"llmparity/internal/modellib"
	"llmparity/internal/record"
)

// Package is a model as WebLLM wants it.
type Package struct {
	Dir          string // mlc-chat-config.json, tensor-cache.json, shards, tokenizer
	ID           string
	DType        string // F32 or F16: of weights, activations and KV cache
	Library      Library
	Policy       map[string]string // what a reader must know of how it was made: kv_dtype …
	Warnings     []record.Warning  // what a reader of any figure made with it must know
	Context      int               // tokens
	PrefillChunk int
	Overrides    map[string]any // of mlc-chat-config.json
}

// Target is what a package is made for.
type Target struct {
	Kernels string // SoftwareKernels or GPUKernels
	DType   string // F32 or F16
}

// Kernels and dtypes that a model library may have.
const (
	AutoKernels     = "auto" // by the adapter
	SoftwareKernels = "software"
	GPUKernels      = "gpu"
	F32             = "f32"
	F16             = "f16"
)

// prefillChunk is how many prompt tokens the library takes at a time, where the context has room for as many.
const prefillChunk = 128

// Options are those of a model's package and library.
func Options(context int, dtype string) mlc.Options {
	o := mlc.Options{ContextWindow: context, PrefillChunk: min(prefillChunk, context), DType: "float32"}
	if dtype == F16 {
		o.DType = "float16"
	}
	return o
}

// variant is the library's for a target.
func (c Config) variant(t Target) modellib.Variant {
	return modellib.Variant{Kernels: t.Kernels, Sort: cmp.Or(c.Sort, "partial")}
}

// make makes a WebLLM package, with its library, in the cache, unless it is there.
func (w *WebLLM) make(ctx context.Context, m engine.Model, t Target, say func(string)) (Package, error) {
	b, err := w.bundle(ctx, say)
	if err != nil {
		return Package{}, err
	}
	if m.Format == model.WebLLM {
		return w.packaged(ctx, m, b, say)
	}
	f, err := gguf.OpenReadable(m.Path)
	if err != nil {
		return Package{}, err
	}
	defer f.Close()
	options := Options(m.Context, w.settings.DType)
	made := Package{ID: m.Name, DType: t.DType, Context: m.Context, PrefillChunk: options.PrefillChunk,
		Policy: map[string]string{"weights_dtype": t.DType, "kv_dtype": t.DType, "activations_dtype": t.DType}}
	// The library first: where it can't be had, no package is written in vain.
	if w.config.Library == "" {
		made.Library, err = w.library(ctx, f, options, b, t, say)
	} else {
		var lib mlc.Library
		made.Library, lib, err = w.givenLibrary(ctx, f, options, b, say)
		made.PrefillChunk = lib.PrefillChunkSize // WebLLM goes by the library
	}
	if err != nil {
		return Package{}, err
	}
	made.Policy["model_library"] = made.Library.String()
	made.Dir = filepath.Join(w.settings.Cache, "packages", fmt.Sprintf("%s-v%d-c%d-p%d-%s", m.SHA256[:12],
		mlc.Version, m.Context, options.PrefillChunk, t.DType))
	if _, missing := os.Stat(made.Dir); missing != nil {
		say("converting " + m.Name + " into a WebLLM package, once")
		err = convert(ctx, m, made.Dir, options, say)
	} else {
		err = stillOf(made, m)
	}
	if err != nil {
		return Package{}, err
	}
	otherArithmetic(&made, m.DType)
	shape, err := mlc.Shape(f, options)
	for _, text := range mlc.Warnings(shape) {
		made.Warnings = append(made.Warnings, record.Warning{Code: "engines-differ", Text: text})
	}
	return made, err
}

// stillOf tells whether a package in the cache and the library that was found or made just now are of one model. They
// aren't where the model's file was replaced after its sum was taken.
func stillOf(p Package, m engine.Model) error {
	existing, err := mlc.OpenPackage(p.Dir)
	if err != nil {
		return fault.Wrap(fault.BadModel, err, "delete it: it will be made again",
			"the model's package in the cache can't be used")
	}
	lib, err := mlc.OpenLibrary(p.Library.Path)
	if err != nil {
		return err
	}
	if err := lib.MatchesPackage(existing, existing.Params()); err != nil {
		return fault.Wrap(fault.BadModel, err, "let it be while a run goes on, and try again",
			"model %s was replaced, or its package changed", m.Path)
	}
	return nil
}

// library is the one that is compiled for the model, unless the cache has it.
func (w *WebLLM) library(ctx context.Context, f *gguf.File, options mlc.Options, b Bundle, t Target,
	say func(string)) (Library, error) {
	if err := b.Fits(mlc.OwnImports()); err != nil {
		return Library{}, err
	}
	built, err := Compile(ctx, w.settings.Cache, f, options, w.config.variant(t), say)
	if err != nil {
		return Library{}, err
	}
	info, err := os.Stat(built.Path)
	if err != nil {
		return Library{}, fmt.Errorf("the model library: %w", err)
	}
	return Library{Path: built.Path, SHA256: built.SHA256, Bytes: info.Size(), Origin: Ours,
		Detail: w.config.variant(t).String(), Kernels: t.Kernels}, nil
}

// Compile compiles the model's library unless the cache has it.
func Compile(ctx context.Context, dir string, f *gguf.File, options mlc.Options, v modellib.Variant,
	say func(string)) (modellib.Library, error) {
	shape, err := mlc.Shape(f, options)
	if err != nil {
		return modellib.Library{}, err
	}
	return modellib.Build(ctx, modellib.FindTools(dir, os.Getenv), shape, v, say)
}

// otherArithmetic notes where a package doesn't compute on the model's weights as they are stored, with sums of
// float32: another engine, which does, doesn't do the same arithmetic.
func otherArithmetic(p *Package, stored string) {
	warn := func(text string) {
		p.Warnings = append(p.Warnings, record.Warning{Code: "weights-differ", Text: text})
	}
	switch {
	case p.DType == F16:
		p.Policy["weights"] = "rounded to f16 from " + stored
		if stored == F16 {
			p.Policy["weights"] = "f16, as stored"
		}
		warn(fmt.Sprintf("the model's weights are %s: WebLLM computes with weights, activations and KV cache in f16, a native engine on "+
			"the stored weights with activations in f32 or rounded in another way, so greedy tokens may part", stored))
	case stored != F32:
		p.Policy["weights"] = "dequantised to f32 from " + stored
		warn(fmt.Sprintf("the model's weights are %s: WebLLM computes on them dequantised to f32, a native engine on the stored ones "+
			"with rounded activations, so greedy tokens may part", stored))
	}
}

// convert makes a package in the cache. Where two do so at once, the same package takes the place of the first in one
// step.
func convert(ctx context.Context, m engine.Model, target string, options mlc.Options, say func(string)) error {
	sweepPackages(filepath.Dir(target))
	options.SHA256 = m.SHA256 // by which the cache knows the package
	written, err := mlc.Write(ctx, m.Path, target, options)
	if err != nil {
		return err
	}
	for _, w := range written.Warnings {
		say(w)
	}
	return nil
}

// sweepPackages removes what earlier versions left in the cache when they were killed: packages whose names end in the
// number of a process that is gone.
func sweepPackages(dir string) {
	entries, _ := os.ReadDir(dir) // it may not be there yet
	for _, e := range entries {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Ext(e.Name()), "."))
		if err == nil && pid > 0 && !child.Alive(pid) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}
