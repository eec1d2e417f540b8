package webllm

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/mlc"
)

// packaged prepares a model that is a package already. It only needs a library, by default the one beside the weights.
func (w *WebLLM) packaged(ctx context.Context, m models.Model, b Bundle, say func(string)) (Package, error) {
	existing, err := mlc.OpenPackage(m.Path)
	if err != nil {
		return Package{}, err
	}
	dtype := F32
	if strings.Contains(existing.Quantization, F16) && !existing.Whole || existing.Shape.DType == mlc.Float16 {
		dtype = F16
	}
	if w.settings.DType == F16 && dtype == F32 {
		return Package{}, fault.New(fault.Usage, "omit --dtype",
			"package %s has its own dtype (%s)", m.Path, existing.Quantization)
	}
	given := cmp.Or(w.config.given(), existing.Library)
	source, asked := given, existing // with the requested context
	asked.Shape.ContextWindowSize = m.Context
	if given == "" && len(existing.Libraries) == 0 && w.config.auto() {
		given, source = w.replacement(b, func(l mlc.Library) error { return l.ReplacesPackage(asked) })
	}
	if given == "" {
		return Package{}, noLibrary(existing)
	}
	policy := map[string]string{"weights_dtype": mlc.Plain(existing.Quantization), "kv_dtype": dtype,
		"activations_dtype": dtype}
	// A package in the store knows its source.
	stored, missing := catalogue.Open(filepath.Dir(m.Path), filepath.Base(m.Path))
	if missing == nil && w.config.given() == "" {
		_, origin := stored.Library()
		source = origin.From
		policy["model_source"] = cmp.Or(stored.Source, stored.Entry.Model)
	}
	lib, library, err := w.openLibrary(ctx, given, source, b, say)
	if err != nil {
		return Package{}, err
	}
	if err := lib.MatchesPackage(asked); err != nil {
		return Package{}, err
	}
	// A sliding window would replace the context. Without it, texts up to the window's length are the same.
	overrides := map[string]any{"context_window_size": m.Context, "sliding_window_size": -1}
	return Package{Dir: m.Path, ID: m.Name, DType: dtype, KVDType: dtype, NeedsF16: existing.Has(mlc.Float16),
		Context: m.Context, PrefillChunk: lib.PrefillChunkSize,
		Policy: policy, Library: library, Overrides: overrides}, nil
}

func noLibrary(p mlc.Existing) error {
	if len(p.Libraries) == 0 {
		return fault.New(fault.BadLibrary,
			"name one with --model-lib, put its .wasm into the folder, or get one with \"llmparity model library fetch ID\"",
			"package %s has no model library", p.Dir)
	}
	names := make([]string, len(p.Libraries))
	for i, file := range p.Libraries {
		names[i] = filepath.Base(file)
	}
	return fault.New(fault.BadLibrary, "choose one with --model-lib "+p.Libraries[0],
		"package %s has several model libraries: %s", p.Dir, strings.Join(names, ", "))
}
