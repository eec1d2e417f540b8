package baseline

import (
	"errors"
	"io/fs"
	"os"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Missing is that there is no baseline run of a name or at a path, which is not the same as one that can't be read.
type Missing struct{ error }

func (m *Missing) Unwrap() error { return m.error }

// Find gives the folder of a baseline run, and what the store says of it, nil where it is none of the store's. What
// looks like a path is one; anything else is a name in the store, or a folder where the store has none of that name.
func (s Store) Find(name string) (dir string, stored *Baseline, err error) {
	_, err = s.Get(name)
	known := err == nil || fault.Of(err) == fault.BadRecord
	if CheckName(name) == nil && !record.IsRun(name) || known {
		b, err := s.Open(name)
		if errors.Is(err, fs.ErrNotExist) && fault.Of(err) == fault.Usage {
			err = &Missing{err}
		}
		return b.Dir, &b, err
	}
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return "", nil, &Missing{fault.New(fault.Usage, "name a saved baseline run, or a run's folder",
			"there is no folder %s", name)}
	}
	return name, nil, nil
}
