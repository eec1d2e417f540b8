package webllm

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"llmparity/internal/host/cache"
	"llmparity/internal/models/catalogue"
	"llmparity/internal/models/mlc"
)

// Library is a compiled model library: the code for a model. Every figure depends on it.
type Library struct {
	Path   string // the .wasm
	SHA256 string
	Bytes  int64
	Origin string // Ours, MLC or Given
	Detail string // variant or name
	Source string // URL or path; empty: compiled here
	// Kernels is the kind of adapter that it was compiled for, as in Target; empty: unknown.
	Kernels string
}

// Origins of a model library.
const (
	Ours  = "ours"
	MLC   = "MLC's"
	Given = "given"
)

func (l Library) String() string {
	if l.Detail == "" {
		return l.Origin
	}
	return fmt.Sprintf("%s (%s)", l.Origin, l.Detail)
}

// openLibrary opens a library, after downloading it if necessary, checks that it fits WebLLM, and describes it for the
// record. source is empty for one that was compiled here.
func (w *WebLLM) openLibrary(ctx context.Context, given, source string, b Bundle, say func(string)) (
	lib mlc.Library, l Library, err error) {
	l.Path, l.Source = given, source
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
	lib.File, l.Bytes = given, lib.Bytes
	l.Origin, l.Detail, l.Kernels = OriginOf(source, lib)
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

// OriginOf returns whose library it is: ours are marked, MLC's have a known URL, or its path on a mirror.
func OriginOf(given string, lib mlc.Library) (origin, detail, kernels string) {
	if v := lib.Own; v != nil {
		return Ours, v.String(), v.Kernels
	}
	at := filepath.ToSlash(given)
	known := strings.Contains(at, "/"+catalogue.LibrariesPath+"/")
	if u, err := url.Parse(given); err == nil && isAddress(given) {
		// github.com/mlc-ai/binary-mlc-llm-libs/raw/main/…,
		// raw.githubusercontent.com/mlc-ai/binary-mlc-llm-libs/main/…
		at, known = u.Path, (u.Host == "github.com" || u.Host == "raw.githubusercontent.com") &&
			strings.HasPrefix(u.Path, "/"+catalogue.LibrariesPath+"/")
	}
	if known {
		return MLC, path.Base(path.Dir(at)) + "/" + path.Base(at), GPUKernels
	}
	return Given, path.Base(at), ""
}

func isAddress(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}
