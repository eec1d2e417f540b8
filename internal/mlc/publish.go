package mlc

import (
	"errors"
	"io/fs"
	"os"
)

// publish moves a complete package to its place. If the system can swap folders atomically, there is always a complete
// package; elsewhere the old one is missing for a moment. Afterwards the old package is at from, for removal.
// Concurrent publishers can interfere between the steps; each round of the loop means that another one succeeded.
func publish(from, to string) error {
	for {
		err := os.Rename(from, to) // works if to is missing or an empty folder
		if err == nil || !taken(to) {
			return err
		}
		if err := replaceable(to); err != nil {
			return err
		}
		switch err := exchange(from, to); {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist) && taken(from): // the old package disappeared
		case errors.Is(err, errors.ErrUnsupported):
			if err := moveAside(to, from+".old"); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// taken reports whether a path exists.
func taken(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// moveAside removes the old package in two steps, so that its folder is never seen half removed.
func moveAside(to, old string) error {
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(to, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(old)
}
