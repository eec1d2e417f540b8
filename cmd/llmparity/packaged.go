package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"llmparity/browser"
	"llmparity/internal/cache"
	"llmparity/internal/catalogue"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/mlc"
	"llmparity/internal/record"
)

// webllmFormat is the format of models that are WebLLM packages already: no other engine runs them.
const webllmFormat = "webllm"

// openPackaged reads what a package says of itself. A context of 0 is the package's own.
func openPackaged(dir, name string, context int) (engine.Model, error) {
	p, err := mlc.OpenPackage(dir)
	if err != nil {
		return engine.Model{}, err
	}
	window := p.Longest()
	if context == 0 {
		context = window
	}
	if window > 0 && context > window {
		return engine.Model{}, fault.New(fault.Usage, "give a smaller --context",
			"context: %d, the package %s was made for at most %d",
			context, dir, window)
	}
	// The list has a sum of every shard: its own sum stands for all.
	sum, err := cache.HashFile(filepath.Join(dir, p.List))
	if err != nil {
		return engine.Model{}, err
	}
	m := engine.Model{Path: dir, Model: record.Model{
		Name: name, SHA256: sum, Format: webllmFormat, Architecture: p.ModelType, DType: p.Quantization, FileB: p.Bytes,
		WeightsB: p.Bytes, Context: context, MaxContext: max(window, 0), Layers: p.Layers, Heads: p.Heads,
		KVHeads: p.KVHeads, HeadDim: p.HeadDim,
		Hidden: p.Hidden, Vocab: p.Vocab,
	}}
	return m, nil
}

// inCatalogue finds a model's entry in WebLLM's catalogue.
func inCatalogue(id string) (catalogue.Entry, error) {
	known, err := builtInCatalogue()
	if err != nil {
		return catalogue.Entry{}, err
	}
	return known.Find(id)
}

// chatEntry is inCatalogue for a model that can be run.
func chatEntry(id string) (catalogue.Entry, error) {
	e, err := inCatalogue(id)
	if err == nil && (e.Type != catalogue.Chat || e.Manifest != "") {
		err = fault.New(fault.UnknownModel, "choose another (llmparity model list)",
			"the model %s (%s) is none that only continues texts", id, e.Type)
	}
	return e, err
}

// catalogued gives a model of WebLLM's catalogue, fetched into the store unless it is there.
func (f *runFlags) catalogued(ctx context.Context, id string, context int, say func(string)) (engine.Model, error) {
	e, err := chatEntry(id)
	if err != nil {
		return engine.Model{}, err
	}
	o := catalogue.Options{Store: catalogue.Store(cache.Dir(os.Getenv)), Mirror: f.mirror}
	if e.Needs(catalogue.ShaderF16) {
		device, err := f.webllm().Device(ctx, say)
		if err != nil {
			return engine.Model{}, err
		}
		o.Features = browser.Features(device)
	}
	p, err := catalogue.Fetch(ctx, e, o, catalogue.Lines(say, 2*time.Second))
	if err != nil {
		return engine.Model{}, err
	}
	if context == 0 {
		context = max(e.Context(), 0)
	}
	return openPackaged(p.Dir, e.ID, context)
}

// packaged makes ready a model that is a package: all it lacks is a library, which lies beside the weights unless one
// is named.
func (p packager) packaged(ctx context.Context, m engine.Model, say func(string)) (browser.Package, error) {
	existing, err := mlc.OpenPackage(m.Path)
	if err != nil {
		return browser.Package{}, err
	}
	dtype := browser.F32
	if strings.Contains(existing.Quantization, browser.F16) {
		dtype = browser.F16
	}
	if p.dtype == browser.F16 && dtype == browser.F32 {
		return browser.Package{}, fault.New(fault.Usage, "leave --dtype out",
			"the package %s has types of its own (%s)", m.Path, existing.Quantization)
	}
	given := cmp.Or(p.given, existing.Library)
	if given == "" {
		return browser.Package{}, noLibrary(existing)
	}
	lib, file, err := p.open(ctx, given, say)
	if err != nil {
		return browser.Package{}, err
	}
	asked := existing // with the context that it is to have
	asked.ContextWindowSize = m.Context
	if err := lib.MatchesPackage(asked, existing.Params()); err != nil {
		return browser.Package{}, err
	}
	made := browser.Package{
		Dir: m.Path, ID: m.Name, DType: dtype, Context: m.Context, PrefillChunk: lib.PrefillChunkSize,
		Policy: map[string]string{"weights_dtype": existing.Quantization, "kv_dtype": dtype,
			"activations_dtype": dtype},
	}
	// A rotating window takes the context's place: without it a text no longer than the window is the same.
	made.Overrides = map[string]any{"context_window_size": m.Context, "sliding_window_size": -1}
	// A package out of the store knows where it is from.
	source := given
	if stored, err := catalogue.Open(filepath.Dir(m.Path), filepath.Base(m.Path)); err == nil && p.given == "" {
		_, origin := stored.Library()
		source = origin.From
		made.Policy["model_source"] = cmp.Or(stored.Source, stored.Entry.Model)
	}
	made.Library, err = named(lib, file, source)
	made.Policy["model_library"] = made.Library.String()
	return made, err
}

func noLibrary(p mlc.Existing) error {
	if len(p.Libraries) == 0 {
		return fault.New(fault.BadLibrary, "name one with --model-lib, or put its .wasm into the folder",
			"the package %s has no model library beside it", p.Dir)
	}
	names := make([]string, len(p.Libraries))
	for i, file := range p.Libraries {
		names[i] = filepath.Base(file)
	}
	return fault.New(fault.BadLibrary, "choose one with --model-lib "+p.Libraries[0],
		"the package %s has more than one model library beside it: %s", p.Dir, strings.Join(names, ", "))
}

// isPackage tells a folder that holds a WebLLM package, or claims to.
func isPackage(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// smolLM2Path is where scripts/setup puts the real model of tests and benchmarks.
func smolLM2Path() (string, error) {
	dir := filepath.Join(cache.Dir(os.Getenv), "models", "smollm2")
	found, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	if err != nil || len(found) != 1 {
		return "", fault.New(fault.BadModel, "run scripts/setup smollm2", "the model smollm2 is not in %s", dir)
	}
	return found[0], nil
}
