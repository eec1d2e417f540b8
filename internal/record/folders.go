package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"llmparity/internal/fault"
)

// IsRun reports whether dir is a run folder, complete or not.
func IsRun(dir string) bool {
	for _, name := range []string{metaFile, journalFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Folders returns every run folder below root, or root itself, ordered by name. It doesn't follow links, so that
// latest is not counted twice.
func Folders(root string) ([]string, error) {
	const do = "name a folder that `llmparity run` wrote, or its parent"
	var out []string
	at, err := filepath.EvalSymlinks(root)
	if err == nil {
		err = filepath.WalkDir(at, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case path == at && err == nil && !entry.IsDir():
				return errors.New("not a folder")
			case path == at && err != nil:
				return err
			case err != nil || !entry.IsDir():
				return nil // no permission, or a file
			case path != at && strings.HasPrefix(entry.Name(), "."):
				return fs.SkipDir // unfinished
			case IsRun(path):
				out = append(out, path)
				return fs.SkipDir
			}
			return nil
		})
	}
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return nil, fault.Wrap(fault.BadRecord, err, do, "can't read %s", root)
	}
	if len(out) == 0 {
		return nil, fault.New(fault.BadRecord, do, "no run folder in %s", root)
	}
	return out, nil
}
