package whole

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// prefix begins the names of unfinished files and folders.
const prefix = ".llmparity-writing-"

// Folder is a folder written beside its final place, to be renamed there. Its owner holds a lock that ends with the
// process, so a folder that can be locked is left over from a killed process.
type Folder struct {
	Path string
	held *os.File // nil where folders can't be locked
}

// NewFolder creates a folder in parent, creating parent if needed, and removes leftovers of killed processes.
func NewFolder(parent string) (Folder, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return Folder{}, err
	}
	path, held, err := aside(parent, func() (string, error) { return os.MkdirTemp(parent, prefix+"*") })
	return Folder{path, held}, err
}

// Remove removes the folder, or whatever has replaced it.
func (f Folder) Remove() {
	_ = os.RemoveAll(f.Path) // if this fails, a later sweep removes it
	_ = f.held.Close()
}

// newFile creates an empty file in parent.
func newFile(parent string) (string, error) {
	f, err := os.CreateTemp(parent, prefix+"*")
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// aside creates a file or folder in parent and locks it.
func aside(parent string, create func() (string, error)) (path string, held *os.File, err error) {
	sweep(parent)
	for {
		if path, err = create(); err != nil {
			return "", nil, err
		}
		held, _ = lock(path, patient)
		// Between creation and locking, another process may have swept it.
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, held, nil
		}
		_ = held.Close()
	}
}

// sweep removes leftovers that nobody holds a lock on. Without file locks it removes nothing.
func sweep(parent string) {
	entries, _ := os.ReadDir(parent) // an unreadable folder fails when it is written to
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.IsDir() && !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if held, err := lock(path, exclusive); err == nil {
			Folder{path, held}.Remove()
		}
	}
}

// Replace moves the folder from to to. A folder there is removed, after it was moved aside: whoever looks sees the old
// folder, the new one, or for a moment none.
func Replace(from, to string) error {
	if err := Discard(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}

// Discard removes a folder, after it was moved aside: whoever looks sees it complete or not at all.
func Discard(path string) error {
	old, err := NewFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer old.Remove()
	return os.Rename(path, filepath.Join(old.Path, "old"))
}

// NextFree moves a folder to path, or if that is taken, to path-2 and so on. It returns where the folder is.
func NextFree(from, path string) (string, error) {
	for n := 1; ; n++ {
		to := path
		if n > 1 {
			to = fmt.Sprintf("%s-%d", path, n)
		}
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		err := os.Rename(from, to)
		if errors.Is(err, os.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) {
			continue // another process was faster
		}
		return to, err
	}
}

// Link makes path a link to a file or folder beside it, in place of the link that is there.
func Link(name, path string) error {
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+name)
	_ = os.Remove(tmp) // left over if a process was killed between the next two steps
	if err := os.Symlink(name, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return nil
}
