package mlc

import (
	"errors"
	"io/fs"
	"os"
)

// publish puts a finished package in its place. Where the system can exchange two folders in one step there is always a
// whole package for whoever looks; elsewhere an older one is out of the way for a moment. What was there before is in
// from's place afterwards, to be removed. Another one that publishes at the same time gets between the steps now and
// then: hence the loop, each round of which means that another one has succeeded.
func publish(from, to string) error {
	for {
		err := os.Rename(from, to) // onto nothing, or onto an empty folder
		if err == nil || !taken(to) {
			return err
		}
		if err := replaceable(to); err != nil {
			return err
		}
		switch err := exchange(from, to); {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist) && taken(from): // what was there has gone
		case errors.Is(err, errors.ErrUnsupported):
			if err := moveAside(to, from+".old"); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// taken says whether something is at a path.
func taken(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// moveAside makes room in two steps. The old package's folder is no longer in its place when it is removed.
func moveAside(to, old string) error {
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(to, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(old)
}
