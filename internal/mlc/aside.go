package mlc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// asidePrefix begins the names of unfinished packages' folders; they are beside their places, to be renamed and never copied.
const asidePrefix = ".mlc-"

// aside is the folder of a package that is being written. Its owner holds a lock on it, which goes with the process: a
// folder that can be locked was left by one that was killed.
type aside struct {
	dir  string
	lock *os.File // nil where folders can't be locked
}

// newAside makes a folder in parent, and removes what killed ones have left there.
func newAside(parent string) (aside, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return aside{}, err
	}
	Sweep(parent)
	for {
		dir, err := os.MkdirTemp(parent, asidePrefix+"*")
		if err != nil {
			return aside{}, err
		}
		a := aside{dir: dir, lock: lock(dir, true)}
		// Between the two steps another one may have taken it for a leftover.
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return a, nil
		}
		a.remove()
	}
}

// remove removes the folder, or the package that has taken its place.
func (a aside) remove() {
	_ = os.RemoveAll(a.dir) // swept later at the latest
	if a.lock != nil {
		_ = a.lock.Close()
	}
}

// Sweep removes the folders of unfinished packages in parent that nobody writes any more. Where folders can't be locked it
// does nothing, because nobody can tell.
func Sweep(parent string) {
	entries, _ := os.ReadDir(parent) // what can't be read can't be written either, which is told elsewhere
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), asidePrefix) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if held := lock(dir, false); held != nil {
			aside{dir, held}.remove()
		}
	}
}
