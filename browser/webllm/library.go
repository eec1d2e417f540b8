package webllm

import (
	"context"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"llmparity/internal/host/cache"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/mlc"
	"llmparity/internal/record"
)

// Library is a compiled model library: the code for a model. Every figure depends on it.
type Library struct {
	Path string // the .wasm
	record.Library
}

// MLC makes the libraries that WebLLM's users run.
const MLC = "MLC"

// openLibrary opens a library, after downloading it if necessary, checks that it fits WebLLM, and describes it for the
// record. source is empty for one that was compiled here.
func (w *WebLLM) openLibrary(ctx context.Context, given, source string, b Bundle, say func(string)) (
	lib mlc.Library, l Library, err error) {
	l.Path = given
	if isAddress(given) {
		kept, err := catalogue.KeptLibrary(w.settings.Cache, given)
		if err != nil {
			kept, err = catalogue.FetchLibrary(ctx, w.settings.Cache, given, "", say)
		}
		if l.Path = kept.File; err != nil {
			return lib, l, err
		}
	}
	if lib, err = mlc.OpenLibrary(l.Path); err != nil {
		return lib, l, err
	}
	lib.File = given
	l.Library = Describe(source, lib)
	if err := b.Fits(lib.Imports); err != nil {
		return lib, l, err
	}
	l.SHA256, err = cache.HashFile(l.Path)
	return lib, l, err
}

// replacement returns the first library of MLC's, in the store or a mirror's folder, that fits WebLLM and the model.
func (w *WebLLM) replacement(b Bundle, fits func(mlc.Library) error) (path, from string) {
	for l := range catalogue.Libraries(w.settings.Cache, w.settings.Mirror) {
		if b.Fits(l.Imports) == nil && fits(l.Library) == nil {
			return l.File, l.From
		}
	}
	return "", ""
}

// Describe describes a library from a URL or path; empty: compiled here. Ours are marked, and MLC's have a known URL,
// or its path on a mirror.
func Describe(given string, lib mlc.Library) record.Library {
	l := record.Library{Usual: MLC, Source: given, Bytes: lib.Bytes}
	if v := lib.Own; v != nil {
		l.Maker, l.Variant, l.Kernels = record.Llmparity, v.String(), v.Kernels
		return l
	}
	at := filepath.ToSlash(given)
	known := strings.Contains(at, "/"+catalogue.LibrariesPath+"/")
	if u, err := url.Parse(given); err == nil && isAddress(given) {
		// github.com/mlc-ai/binary-mlc-llm-libs/raw/main/…,
		// raw.githubusercontent.com/mlc-ai/binary-mlc-llm-libs/main/…
		at, known = u.Path, (u.Host == "github.com" || u.Host == "raw.githubusercontent.com") &&
			strings.HasPrefix(u.Path, "/"+catalogue.LibrariesPath+"/")
	}
	if l.Variant = path.Base(at); known {
		l.Maker, l.Variant, l.Kernels = MLC, path.Base(path.Dir(at))+"/"+l.Variant, MLCKernels
	}
	return l
}

func isAddress(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}
