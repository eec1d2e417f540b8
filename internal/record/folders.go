package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"llmparity/internal/fault"
)

// IsRun tells a run folder, whole or not.
func IsRun(dir string) bool {
	for _, name := range []string{metaFile, journalFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Folders finds every run below a folder, or the folder itself, in the order of names. Links are not followed: the
// latest run would count twice.
func Folders(root string) ([]string, error) {
	const do = "name a folder that `llmparity run` wrote, or one with such folders in it"
	at, err := filepath.EvalSymlinks(root)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(at); err == nil && !info.IsDir() {
			err = errors.New("it is no folder")
		}
	}
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, fault.Wrap(fault.BadRecord, err, do, "%s can't be read", root)
	}
	var out []string
	err = filepath.WalkDir(at, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path == at:
			return err
		case err != nil:
			return nil // not ours to read
		case !entry.IsDir():
			return nil
		case path != at && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir // one that is being made
		case IsRun(path):
			out = append(out, path)
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fault.Wrap(fault.BadRecord, err, do, "%s can't be read", root)
	}
	if len(out) == 0 {
		return nil, fault.New(fault.BadRecord, do, "there is no run folder below %s", root)
	}
	return out, nil
}
