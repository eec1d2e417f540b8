package catalogue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/whole"
	"llmparity/internal/models/mlc"
)

// Compiled is a model library that is here.
type Compiled struct {
	mlc.Library
	SHA256 string `json:"sha256"`
	From   string `json:"from"` // URL, or path in a mirror
}

// libraryFile returns where the library of a public URL is kept. Beside it, a file .json has its Compiled.
func libraryFile(root, public string) string {
	sum := sha256.Sum256([]byte(public))
	return filepath.Join(root, "libraries", hex.EncodeToString(sum[:])[:16]+".wasm")
}

func described(path string) string { return strings.TrimSuffix(path, ".wasm") + ".json" }

// pinned reads the description of a kept library, also if the library itself is gone.
func pinned(path string) (c Compiled, err error) {
	text, err := os.ReadFile(described(path))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	c.File = path
	return c, err
}

// KeptLibrary returns the library of a public URL from the store, if it has the content of its description.
func KeptLibrary(root, public string) (Compiled, error) { return kept(libraryFile(root, public)) }

func kept(path string) (Compiled, error) {
	c, err := pinned(path)
	if err != nil {
		return c, err
	}
	sum, err := cache.HashFile(path)
	if err == nil && sum != c.SHA256 {
		err = errors.New("it has changed")
	}
	return c, err
}

// FetchLibrary downloads the library of a public URL, or of a mirror, into the store. The first fetch pins its content:
// another content is refused.
func FetchLibrary(ctx context.Context, root, public, mirror string, say func(string)) (c Compiled, err error) {
	u, err := url.Parse(public)
	if err != nil || u.Host == "" {
		return c, fault.New(fault.Usage, "", "%q is not the URL of a model library", public)
	}
	if err := Safe(u); err != nil {
		return c, fault.Wrap(fault.Usage, err, "use https", "model library %s", public)
	}
	from, err := openSource(mirror, nil)
	if err != nil {
		return c, err
	}
	defer from.close()
	path, at := libraryFile(root, public), from.at(u)
	if err := cache.MkdirAll(filepath.Dir(path)); err != nil {
		return c, err
	}
	c.From = from.shown(at)
	say("downloading the model library " + c.From)
	err = whole.Fill(path, func(file *os.File) (err error) {
		d := downloader{client: from.client, meter: &meter{id: "model library", say: say, interval: interval}}
		p := &part{file: file, sums: newSums()}
		if err := d.fill(ctx, wanted{name: c.From, url: at, size: -1, most: maxLibrary}, p); err != nil {
			return err
		}
		if c.Library, err = mlc.OpenLibrary(file.Name()); err != nil {
			return fault.New(fault.BadLibrary, "use the URL of the .wasm file itself", "%s is not a model library",
				c.From)
		}
		c.SHA256 = hexSum(p.sh)
		if was, err := pinned(path); err == nil && was.SHA256 != c.SHA256 {
			return fault.New(fault.BadLibrary, "to accept it, remove "+described(path),
				"model library %s has SHA-256 %s, but had %s when it was first fetched", c.From, c.SHA256, was.SHA256)
		}
		return whole.JSON(described(path), c)
	})
	c.File = path
	if ctx.Err() != nil {
		return c, context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*errDisk](err); ok {
		err = failed.error
	}
	err = diskFault(err, filepath.Dir(path))
	if _, known := errors.AsType[*fault.Error](err); err == nil || known {
		return c, err
	}
	return c, fault.Wrap(fault.BadLibrary, err, "use another address, or download it by hand and name it with --model-lib",
		"the model library %s cannot be downloaded", c.From)
}

// Libraries yields the model libraries in the cache folder root, those beside stored models, and those of a mirror's
// folder.
func Libraries(root, mirror string) iter.Seq[Compiled] {
	return func(yield func(Compiled) bool) {
		here := os.DirFS(root)
		found, _ := fs.Glob(here, "libraries/*.wasm") // the pattern is valid
		for _, name := range found {
			if c, err := kept(filepath.Join(root, name)); err == nil && !yield(c) {
				return
			}
		}
		models, _ := fs.Glob(here, "models/webllm/*/"+LibraryName)
		for _, name := range models {
			if p, err := Open(Store(root), filepath.Base(filepath.Dir(name))); err == nil {
				path, file := p.Library()
				if lib, err := mlc.OpenLibrary(path); err == nil && !yield(Compiled{lib, file.SHA256, file.From}) {
					return
				}
			}
		}
		if mirror == "" {
			return
		}
		below := filepath.Join(mirror, filepath.FromSlash(LibrariesPath))
		_ = filepath.WalkDir(below, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".wasm" {
				return err // what cannot be read has no library
			}
			if lib, err := mlc.OpenLibrary(path); err == nil && !yield(Compiled{Library: lib, From: path}) {
				return fs.SkipAll
			}
			return nil
		})
	}
}

// LibrariesPath is the path of MLC's repository of model libraries, on the public sites and on mirrors.
const LibrariesPath = "mlc-ai/binary-mlc-llm-libs"
