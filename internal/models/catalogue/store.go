package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models/mlc"
)

// Store returns the folder of fetched models in a cache folder. Each model has a folder named by its id.
func Store(cacheDir string) string { return filepath.Join(cacheDir, "models", "webllm") }

// The names of a stored model's files, besides those in its own lists.
const (
	ConfigName   = "mlc-chat-config.json"
	LibraryName  = "lib.wasm"
	manifestName = "llmparity.json"
)

// partial ends the names of incomplete files.
const partial = ".part"

// listNames are the names of the list of weights: the current one, and that of older packages.
var listNames = []string{"tensor-cache.json", "ndarray-cache.json"}

// eitherList calls get with the names of the list until one exists.
func eitherList(get func(name string) error) error {
	err := get(listNames[0])
	if missing(err) || errors.Is(err, fs.ErrNotExist) {
		if older := get(listNames[1]); !missing(older) {
			return older
		}
	}
	return err
}

// Package is a stored model. Except for Dir, it is the content of the model's llmparity.json, which is written last.
type Package struct {
	Schema  int       `json:"schema"`
	Entry   Entry     `json:"entry"`            // as it was when the model was fetched
	Source  string    `json:"source,omitempty"` // the mirror; "": the public URLs
	Fetched time.Time `json:"fetched"`
	Files   []File    `json:"files"` // by name
	Dir     string    `json:"-"`
}

const manifestSchema = 1

// File is a file of a stored model.
type File struct {
	Name   string `json:"name"`
	From   string `json:"from"` // URL or path
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func isShard(name string) bool { return strings.HasSuffix(name, ".bin") }

// Library returns the path and the description of the model library.
func (p Package) Library() (path string, f File) {
	i := slices.IndexFunc(p.Files, func(f File) bool { return f.Name == LibraryName })
	if i < 0 { // Open refuses this
		return "", File{}
	}
	return filepath.Join(p.Dir, LibraryName), p.Files[i]
}

// Bytes returns the size of all files, and that of the weights.
func (p Package) Bytes() (all, weights int64) {
	for _, f := range p.Files {
		all += f.Bytes
		if isShard(f.Name) {
			weights += f.Bytes
		}
	}
	return all, weights
}

func bytesOf(shards []mlc.Shard) (n int64) {
	for _, s := range shards {
		n += s.Bytes
	}
	return n
}

// Open returns a stored model. The error is fs.ErrNotExist if files are missing or have another size; Fetch then gets
// what is missing. Only Fetch compares the content of the small files.
func Open(store, id string) (Package, error) {
	incomplete := func(what string) (Package, error) {
		return Package{}, fmt.Errorf("stored model %q: %s: %w", id, what, fs.ErrNotExist)
	}
	if !plainName.MatchString(id) {
		return incomplete("invalid id")
	}
	p := Package{Dir: filepath.Join(store, id)}
	text, err := os.ReadFile(filepath.Join(p.Dir, manifestName))
	if err != nil {
		return Package{}, fmt.Errorf("stored model %s: %w", id, err)
	}
	if err := json.Unmarshal(text, &p); err != nil || p.Schema != manifestSchema || p.Entry.ID != id {
		return incomplete(manifestName + " is of another version or model")
	}
	for _, f := range p.Files {
		info, err := os.Stat(filepath.Join(p.Dir, f.Name))
		if err != nil || !plainName.MatchString(f.Name) || !info.Mode().IsRegular() || info.Size() != f.Bytes {
			return incomplete(f.Name + " is missing or has another size")
		}
	}
	if path, _ := p.Library(); path == "" {
		return incomplete("no " + LibraryName)
	}
	return p, nil
}

func (p Package) verify(ctx context.Context, files []File) error {
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		do := "remove " + p.Dir + " and fetch it again"
		switch sum, err := cache.HashFile(filepath.Join(p.Dir, f.Name)); {
		case err != nil:
			return fault.Wrap(fault.BadModel, err, do, "stored model %s", p.Entry.ID)
		case sum != f.SHA256:
			return fault.New(fault.BadModel, do, "stored model %s: %s has changed since it was fetched: SHA-256 %s, want %s",
				p.Entry.ID, f.Name, sum, f.SHA256)
		}
	}
	return nil
}

// tokenizerOf checks a package's configuration and returns the tokenizer file that WebLLM reads.
func tokenizerOf(config []byte) (string, error) {
	p, err := mlc.Described(config, nil)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"tokenizer.json", "tokenizer.model"} {
		if slices.Contains(p.TokenizerFiles, name) {
			return name, nil
		}
	}
	return "", fmt.Errorf("WebLLM supports none of its tokenizer files %q", p.TokenizerFiles)
}

// sweep removes the files of a folder except those to keep.
func sweep(dir string, keep func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if err == nil && !keep(e.Name()) {
			err = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	return err
}

// diskFault makes an error of the file system one that the user can act on.
func diskFault(err error, store string) error {
	return fault.WriteError(err, store, "set another cache folder with "+cache.Variable)
}
