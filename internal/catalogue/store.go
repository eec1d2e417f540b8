package catalogue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmparity/internal/cache"
	"llmparity/internal/fault"
	"llmparity/internal/whole"
)

// Store is the folder, in the cache folder, that keeps models that were fetched, each in a folder named by its id.
func Store(cacheDir string) string { return filepath.Join(cacheDir, "models", "webllm") }

// The names of a stored model's files, beside those that its own lists give.
const (
	ConfigName   = "mlc-chat-config.json"
	LibraryName  = "lib.wasm"
	manifestName = "llmparity.json"
	// The list of the weights, as it is called now, and as it was called by older packages.
	weightsName    = "tensor-cache.json"
	oldWeightsName = "ndarray-cache.json"
)

// Package is a model in the store: Dir holds what WebLLM asks for by name, and the model library.
type Package struct {
	Entry   Entry  // as it was when the model was fetched
	Dir     string // the folder
	Source  string // the mirror that it is from; empty: the public addresses
	Files   []File // by name
	Weights Weights
}

// File is a file of a stored model.
type File struct {
	Name   string `json:"name"`
	From   string `json:"from"` // its address, or its path in a folder
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Library gives the model library's path, and what else is known of it.
func (p Package) Library() (path string, f File) {
	i := slices.IndexFunc(p.Files, func(f File) bool { return f.Name == LibraryName })
	if i < 0 { // Open refuses that
		return "", File{}
	}
	return filepath.Join(p.Dir, LibraryName), p.Files[i]
}

// Bytes is the size of all files.
func (p Package) Bytes() int64 {
	var n int64
	for _, f := range p.Files {
		n += f.Bytes
	}
	return n
}

// manifest is a stored model's llmparity.json. It is written last.
type manifest struct {
	Schema  int       `json:"schema"`
	Entry   Entry     `json:"entry"`
	Source  string    `json:"source,omitempty"`
	Fetched time.Time `json:"fetched"`
	Files   []File    `json:"files"`
}

const manifestSchema = 1

// Open gives a stored model. It is fs.ErrNotExist where there is none, or not all of it; Fetch then gets what is
// missing. That every file has its size is checked here; that the small ones are still what was fetched, Fetch checks.
func Open(store, id string) (Package, error) {
	if !plainName.MatchString(id) {
		return Package{}, fmt.Errorf("model %q: %w", id, fs.ErrNotExist)
	}
	return open(filepath.Join(store, id), id)
}

func open(dir, id string) (Package, error) {
	incomplete := func(format string, args ...any) (Package, error) {
		return Package{}, fmt.Errorf("the stored model %s: %s: %w", id, fmt.Sprintf(format, args...), fs.ErrNotExist)
	}
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return Package{}, fmt.Errorf("the stored model %s: %w", id, err)
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil || m.Schema != manifestSchema || m.Entry.ID != id {
		return incomplete("its %s is of another version or model", manifestName)
	}
	p := Package{Entry: m.Entry, Dir: dir, Source: m.Source, Files: m.Files}
	has := map[string]int64{}
	for _, f := range m.Files {
		info, err := os.Stat(filepath.Join(dir, f.Name))
		if err != nil || !plainName.MatchString(f.Name) || !info.Mode().IsRegular() || info.Size() != f.Bytes {
			return incomplete("%s is missing or has another size", f.Name)
		}
		has[f.Name] = f.Bytes
	}
	if text, err = readList(dir); err == nil {
		p.Weights, err = ParseWeights(text)
	}
	if err != nil {
		return incomplete("%v", err)
	}
	for _, s := range p.Weights.Shards {
		if has[s.File] != s.Bytes {
			return incomplete("it lacks %s", s.File)
		}
	}
	for _, name := range []string{ConfigName, LibraryName} {
		if has[name] == 0 {
			return incomplete("it lacks %s", name)
		}
	}
	return p, nil
}

// readList reads the list of the weights of a package in dir.
func readList(dir string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, weightsName))
	if errors.Is(err, fs.ErrNotExist) {
		return os.ReadFile(filepath.Join(dir, oldWeightsName))
	}
	return text, err
}

// small are the files that are no shards: those whose sums are in no list of the package's own.
func (p Package) small() []File {
	return slices.DeleteFunc(slices.Clone(p.Files), func(f File) bool {
		return slices.ContainsFunc(p.Weights.Shards, func(s Shard) bool { return s.File == f.Name })
	})
}

func (p Package) verify(ctx context.Context, files []File) error {
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		sum, err := cache.HashFile(filepath.Join(p.Dir, f.Name))
		if err != nil {
			return fault.Wrap(fault.BadModel, err, "remove "+p.Dir+" and fetch it again", "the stored model %s",
				p.Entry.ID)
		}
		if sum != f.SHA256 {
			return fault.New(fault.BadModel, "remove "+p.Dir+" and fetch it again",
				"the stored model %s: %s has changed since it was fetched: SHA-256 %s, not %s",
				p.Entry.ID, f.Name, sum, f.SHA256)
		}
	}
	return nil
}

// config is of mlc-chat-config.json what is needed here.
type config struct {
	ModelType  string   `json:"model_type"`
	Tokenizers []string `json:"tokenizer_files"`
}

// parseConfig reads it, and tells which tokenizer file WebLLM takes.
func parseConfig(text []byte) (tokenizer string, err error) {
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return "", err
	}
	if c.ModelType == "" {
		return "", errors.New("it names no model_type")
	}
	for _, name := range []string{"tokenizer.json", "tokenizer.model"} {
		if slices.Contains(c.Tokenizers, name) {
			return name, nil
		}
	}
	return "", fmt.Errorf("WebLLM supports none of its tokenizer files %q", c.Tokenizers)
}

// parseLibrary tells whether a file is a WebAssembly module at all.
func parseLibrary(text []byte) error {
	if !bytes.HasPrefix(text, []byte("\x00asm\x01\x00\x00\x00")) {
		return errors.New("not a WebAssembly module")
	}
	return nil
}

// writeFile writes a file whole or not at all.
func writeFile(path string, text []byte) error {
	return whole.Write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// hidden are names in the store that are no model's.
func workDir(store, id string) string  { return filepath.Join(store, ".fetching-"+id) }
func lockPath(store, id string) string { return filepath.Join(store, ".lock-"+id) }

// publish moves a whole model from its work folder to its place, where an older one may be.
func publish(work, place string) error {
	old := filepath.Join(filepath.Dir(place), ".old-"+filepath.Base(place))
	if err := os.RemoveAll(old); err != nil { // left by one that was killed here
		return err
	}
	if err := os.Rename(place, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(work, place); err != nil {
		return errors.Join(err, os.Rename(old, place))
	}
	return os.RemoveAll(old)
}

// sweep removes from a folder what is not to be kept.
func sweep(dir string, keep func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !keep(e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// diskFault makes an error of the file system one that the user can act on.
func diskFault(err error, store string) error {
	return fault.WriteError(err, store, "set another cache folder with "+cache.Variable)
}

// partial ends the names of files that are not whole yet.
const partial = ".part"

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 0:
		return "-"
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 10<<30:
		return strings.Replace(fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)), ".0 ", " ", 1)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
