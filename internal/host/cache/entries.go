package cache

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmparity/internal/kit/whole"
)

// Kind is what an entry is.
type Kind string

// The kinds of entries.
const (
	Converted Kind = "converted model"
	Fetched   Kind = "fetched model"
	Libraries Kind = "model libraries"
	Tool      Kind = "tool"
)

// Model reports whether the limit of the cache concerns the kind.
func (k Kind) Model() bool { return k == Converted || k == Fetched }

// folders have a folder for each model of these kinds.
var folders = map[string]Kind{"packages": Converted, "models/webllm": Fetched}

// Entry is a part of the cache that is removed as a whole.
type Entry struct {
	Name  string    `json:"name"` // path in the cache folder, with slashes
	Kind  Kind      `json:"kind"`
	Bytes int64     `json:"bytes"`
	Used  time.Time `json:"used"`   // last use of a model; last change of anything else
	InUse bool      `json:"in_use"` // a model that a running llmparity uses
	path  string
}

// List returns what is in the cache folder root: models, the least recently used first, then the rest.
func List(root string) ([]Entry, error) {
	models, err := Models(root)
	if err != nil {
		return nil, err
	}
	rest, err := list(root, ".", Tool)
	if err != nil {
		return nil, err
	}
	built, err := list(root, "models", Tool)
	return append(append([]Entry{}, models...), append(rest, built...)...), err
}

// Models returns the models that the limit concerns, the least recently used first.
func Models(root string) (out []Entry, err error) {
	for dir, kind := range folders {
		found, err := list(root, dir, kind)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Or(a.Used.Compare(b.Used), cmp.Compare(a.Name, b.Name)) })
	return out, nil
}

// list returns the entries in a folder of the cache that is one kind's.
func list(root, dir string, kind Kind) (out []Entry, err error) {
	found, err := os.ReadDir(filepath.Join(root, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, d := range found {
		e := Entry{Name: path.Join(dir, d.Name()), Kind: kind, path: filepath.Join(root, dir, d.Name())}
		_, other := folders[e.Name]
		if strings.HasPrefix(d.Name(), ".") || !d.IsDir() || other || e.Name == "models" { // hidden: not complete
			continue
		}
		if e.Name == "modellib" || e.Name == "libraries" {
			e.Kind = Libraries
		}
		err = errors.Join(err, e.look())
		out = append(out, e)
	}
	return out, err
}

// look measures an entry. Files that vanish meanwhile do not count.
func (e *Entry) look() error {
	err := filepath.WalkDir(e.path, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.Type().IsRegular():
			e.Bytes += info.Size()
		}
		if at == e.path || !e.Kind.Model() && info.ModTime().After(e.Used) {
			e.Used = info.ModTime()
		}
		return nil
	})
	if e.Kind.Model() {
		claim, free := whole.Claim(e.path)
		claim()
		e.InUse = !free
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Use marks a model as used now, and keeps it from being removed until the result is closed or the process ends.
// It does nothing for what is not in the cache folder root.
func Use(root, dir string) *os.File {
	if rel, err := filepath.Rel(root, dir); err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	held := whole.Share(dir)
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // in a cache that is not ours, the order of use is lost
	return held
}

// Remove removes an entry. It returns whole.ErrBusy if it is in use.
func (e Entry) Remove() error {
	release, free := whole.Claim(e.path)
	defer release()
	if !free {
		return whole.ErrBusy
	}
	return whole.Discard(e.path)
}
