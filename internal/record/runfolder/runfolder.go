// Package runfolder finds run folders, and the sides of a run that lie beside each other.
package runfolder

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Is reports whether dir is a run folder, complete or not.
func Is(dir string) bool {
	for _, name := range []string{record.MetaFile, record.JournalFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Below returns every run folder below root, or root itself, ordered by name. It doesn't follow links, so that latest
// is not counted twice.
func Below(root string) ([]string, error) {
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
			case Is(path):
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

// Sides are the folders of an interleaved run, whose sides lie beside each other.
type Sides struct {
	Baseline string
	Run      string // empty: it is not there
	Noise    string // empty: none was measured
}

// All are the folders that are there, in the order of their turns.
func (s Sides) All() (out []string) {
	for _, dir := range []string{s.Baseline, s.Noise, s.Run} {
		if dir != "" {
			out = append(out, dir)
		}
	}
	return out
}

// SidesOf finds the sides of the interleaved run that a folder is a side of. The folder may be a link, such as latest.
// false: its run has one side, or the baseline side is not there.
func SidesOf(dir string) (Sides, bool) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	m, err := record.ReadMeta(dir)
	if err != nil || m.Side == nil && m.Against == "" {
		return Sides{}, false
	}
	root := filepath.Dir(filepath.Clean(dir))
	name := filepath.Base(cmp.Or(m.Against, dir))
	s := Sides{Baseline: filepath.Join(root, name)}
	all, err := os.ReadDir(root)
	if err != nil || !Is(s.Baseline) {
		return Sides{}, false
	}
	for _, entry := range all {
		other := filepath.Join(root, entry.Name())
		if !entry.IsDir() { // latest is a link
			continue
		}
		switch of, err := record.ReadMeta(other); {
		case err != nil || of.Against != name:
		case of.Side != nil && of.Side.Role == record.NoiseSide:
			s.Noise = other
		default:
			s.Run = other
		}
	}
	if m.Against != "" && (m.Side == nil || m.Side.Role == record.RunSide) {
		s.Run = dir // several may name one baseline run
	}
	return s, true
}
