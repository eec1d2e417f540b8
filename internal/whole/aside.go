package whole

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// prefix begins the names of unfinished files and folders; nobody else's begin so.
const prefix = ".llmparity-writing-"

// Folder is one that is being written beside its place, to be renamed and never copied. Its owner holds a lock on it,
// which goes with the process: one that can be locked was left by a process that was killed.
type Folder struct {
	Path string
	held *os.File // nil where folders can't be locked
}

// NewFolder makes a folder in parent, which is made too, and removes what killed ones have left there.
func NewFolder(parent string) (Folder, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return Folder{}, err
	}
	path, held, err := aside(parent, func() (string, error) { return os.MkdirTemp(parent, prefix+"*") })
	return Folder{path, held}, err
}

// Remove removes the folder, or what has taken its place.
func (f Folder) Remove() {
	_ = os.RemoveAll(f.Path) // swept later at the latest
	release(f.held)
}

// newFile makes an empty file in parent.
func newFile(parent string) (string, error) {
	f, err := os.CreateTemp(parent, prefix+"*")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// aside has create make a file or a folder in parent, and locks it.
func aside(parent string, create func() (string, error)) (path string, held *os.File, err error) {
	sweep(parent)
	for {
		if path, err = create(); err != nil {
			return "", nil, err
		}
		held = lock(path, true)
		// Between the two steps another one may have taken it for a leftover.
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, held, nil
		}
		release(held)
	}
}

func release(held *os.File) {
	if held != nil {
		_ = held.Close()
	}
}

// sweep removes what nobody writes any more. Where nothing can be locked it stays, because nobody can tell.
func sweep(parent string) {
	entries, _ := os.ReadDir(parent) // what can't be read can't be written either, which is told elsewhere
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.IsDir() && !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if held := lock(path, false); held != nil {
			Folder{path, held}.Remove()
		}
	}
}
