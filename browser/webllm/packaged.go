package webllm

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"llmparity/browser"
	"llmparity/internal/catalogue"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/mlc"
)

// packaged makes ready a model that is a package: all it lacks is a library, which lies beside the weights unless one
// is named.
func (p maker) packaged(ctx context.Context, m engine.Model, b browser.Bundle, say func(string)) (browser.Package,
	error) {
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
	given := cmp.Or(p.Library, existing.Library)
	if given == "" {
		return browser.Package{}, noLibrary(existing)
	}
	lib, file, err := p.open(ctx, given, b, say)
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
	if stored, err := catalogue.Open(filepath.Dir(m.Path), filepath.Base(m.Path)); err == nil && p.Library == "" {
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
