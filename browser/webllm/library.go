package webllm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"llmparity/internal/cache"
	"llmparity/internal/catalogue"
	"llmparity/internal/fault"
	"llmparity/internal/mlc"
	"llmparity/internal/record"
	"llmparity/internal/whole"
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

// otherAdapter warns if a library was compiled for another kind of adapter.
func (l Library) otherAdapter(d record.Device) []record.Warning {
	if fit := kernelsFor(d); l.Kernels != "" && (l.Kernels == SoftwareKernels) != (fit == SoftwareKernels) {
		return []record.Warning{{Code: "library-for-another-adapter",
			Text: fmt.Sprintf("the model library has %s kernels, but the adapter is "+
				"%s (%s): a library made for it would be faster or slower", l.Kernels, d.Name, d.Class)}}
	}
	return nil
}

// openLibrary opens a library, after downloading it if necessary, checks that it fits WebLLM, and describes it for the
// record. source is empty for one that was compiled here.
func (w *WebLLM) openLibrary(ctx context.Context, given, source string, b Bundle, say func(string)) (
	lib mlc.Library, l Library, err error) {
	l.Path, l.Source = given, source
	if isAddress(given) {
		if l.Path, err = fetch(ctx, filepath.Join(w.settings.Cache, "libraries"), given, say); err != nil {
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

// OriginOf returns whose library it is: ours are marked, MLC's have a known URL.
func OriginOf(given string, lib mlc.Library) (origin, detail, kernels string) {
	if v := lib.Own; v != nil {
		return Ours, v.String(), v.Kernels
	}
	name := path.Base(filepath.ToSlash(given))
	if u, err := url.Parse(given); err == nil && isAddress(given) {
		name = path.Base(u.Path)
		// github.com/mlc-ai/binary-mlc-llm-libs/raw/main/…,
		// raw.githubusercontent.com/mlc-ai/binary-mlc-llm-libs/main/…
		if (u.Host == "github.com" || u.Host == "raw.githubusercontent.com") &&
			strings.HasPrefix(u.Path, "/mlc-ai/binary-mlc-llm-libs/") {
			return MLC, path.Base(path.Dir(u.Path)) + "/" + name, GPUKernels
		}
	}
	return Given, name, ""
}

func isAddress(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

// maxFetched limits the size of a library.
const maxFetched = 512 << 20

// fetch downloads a URL into dir, once.
func fetch(ctx context.Context, dir, address string, say func(string)) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fault.New(fault.Usage, "", "--model-lib %q is not a URL", address)
	}
	if err := catalogue.Safe(u); err != nil {
		return "", fault.Wrap(fault.Usage, err, "use https", "--model-lib %s", address)
	}
	sum := sha256.Sum256([]byte(address))
	kept := filepath.Join(dir, hex.EncodeToString(sum[:])[:16]+".wasm")
	if _, err := os.Stat(kept); err == nil {
		return kept, nil
	}
	if err := cache.MkdirAll(dir); err != nil {
		return "", err
	}
	say("downloading the model library " + address)
	err = whole.Fill(kept, func(file *os.File) error { return fetchInto(ctx, u, file, say) })
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return "", known
	}
	if err == nil || ctx.Err() != nil {
		return kept, context.Cause(ctx)
	}
	return "", fault.WriteError(err, dir, "set another cache folder with "+cache.Variable)
}

// fetchInto downloads and checks a library. An invalid file is not kept, because the URL may have a library tomorrow.
func fetchInto(ctx context.Context, u *url.URL, file *os.File, say func(string)) error {
	if err := catalogue.Download(ctx, u, file, maxFetched, say); err != nil {
		if ctx.Err() != nil || fault.Of(err) != fault.Run {
			return err
		}
		return fault.Wrap(fault.BadLibrary, err, "use another URL, or download it by hand and name the file",
			"the model library %s cannot be downloaded", u)
	}
	if _, err := mlc.OpenLibrary(file.Name()); err != nil {
		return fault.New(fault.BadLibrary, "use the URL of the .wasm file itself", "%s is not a model library", u)
	}
	return nil
}
