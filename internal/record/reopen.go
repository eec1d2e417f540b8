package record

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/lines"
	"llmparity/internal/kit/whole"
)

// Reopen prepares a run for resuming: it locks the folder and removes incomplete last lines. Attempts without an end
// stay in the record, uncounted. Numbering continues after the highest numbers ever used, and time after the last line.
//
// The caller must call Resumed before anything else.
func Reopen(dir string) (*Writer, *State, error) {
	real, err := filepath.EvalSymlinks(dir) // results/latest may change
	if err != nil {
		return nil, nil, notARun(err, dir)
	}
	s, err := newState(real)
	if err != nil {
		return nil, nil, err
	}
	if s.Meta.Schema != Schema {
		return nil, nil, fault.New(fault.BadRecord, "resume it with llmparity "+writer(s.Meta.Tool),
			"%s was written by another llmparity (schema %s, this version writes %s)", real, s.Meta.Schema, Schema)
	}
	w := &Writer{dir: real, meta: s.Meta, failed: make(chan struct{})}
	if err := w.reopen(s); err != nil {
		w.closeFiles()
		return nil, nil, resumeFault(err, real)
	}
	return w, s, nil
}

func (w *Writer) reopen(s *State) error {
	if err := w.open("wait for it to end", lines.Reopen); err != nil {
		return err
	}
	if err := s.read(); err != nil {
		return err
	}
	w.attempts, w.sources = s.Last.Attempt, s.Last.Source
	w.clock, w.setBack = s.clock(time.Now())
	link := filepath.Join(filepath.Dir(w.dir), latest)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return nil
	}
	return whole.Link(filepath.Base(w.dir), link)
}

// clock continues the record's time. setBack is how far the machine's clock is behind the last line.
func (s *State) clock(now time.Time) (c clock, setBack int64) {
	// the wall clock is the only one that both processes share
	elapsed := int64(now.Round(0).Sub(s.Meta.Started))
	if elapsed <= s.Last.NS {
		elapsed, setBack = s.Last.NS+1, s.Last.NS-elapsed
	}
	return clock{zero: now.Add(-time.Duration(elapsed)), wall: s.Meta.Started}, setBack
}

// resumeFault makes an error of reopening dir one that the user can act on.
func resumeFault(err error, dir string) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault.Wrap(fault.Unwritable, err,
			"resume it as the user who started it, or start a new run with the plan that `llmparity reproduce` writes",
			"can't resume %s", dir)
	case errors.Is(err, os.ErrNotExist):
		return notARun(err, dir)
	}
	return writeError(err, dir)
}
