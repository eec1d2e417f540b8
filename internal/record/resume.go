package record

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/whole"
)

// Reopen prepares a run for resuming: it locks the folder and removes incomplete last lines. Attempts without an end
// stay in the record, uncounted. Numbering continues after the highest numbers ever used, and time after the last line.
//
// The caller must call Resumed before anything else. Until then only columns that older versions lack are added.
func Reopen(dir string) (*Writer, *State, error) {
	real, err := filepath.EvalSymlinks(dir) // results/latest may change
	if err != nil {
		return nil, nil, notARun(err, dir)
	}
	s, err := newState(real)
	if err != nil {
		return nil, nil, err
	}
	w := &Writer{dir: real, failed: make(chan struct{})}
	if err := w.reopen(s); err != nil {
		w.closeFiles()
		return nil, nil, resumeFault(err, real)
	}
	return w, s, nil
}

func (w *Writer) reopen(s *State) (err error) {
	if w.lock, err = lock(filepath.Join(w.dir, lockFile), "wait for it to end"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(w.dir, logsDir), 0o755); err != nil {
		return err
	}
	for _, f := range w.files() {
		if *f.to, err = reopenAppender(filepath.Join(w.dir, f.name), f.columns); err != nil {
			return err
		}
	}
	if err := s.read(); err != nil {
		return err
	}
	for _, f := range w.files() {
		if f.columns == nil {
			continue
		}
		if err := s.tail(*f.to, f.columns); err != nil {
			return err
		}
	}
	w.attempts, w.sources, w.meta = s.Attempts, s.Sources, s.Meta
	w.clock, w.setBack = s.clock(time.Now())
	return repoint(w.dir)
}

// clock continues the record's time. setBack is how far the machine's clock is behind the last line.
func (s *State) clock(now time.Time) (c clock, setBack int64) {
	// the wall clock is the only one that both processes share
	elapsed := int64(now.Round(0).Sub(s.Meta.Started))
	if elapsed <= s.LastNS {
		elapsed, setBack = s.LastNS+1, s.LastNS-elapsed
	}
	return clock{zero: now.Add(-time.Duration(elapsed)), wall: s.Meta.Started}, setBack
}

// tail looks for higher numbers and times in the last rows of a file: rows reach the disk before the journal does.
func (s *State) tail(a *appender, columns []string) error {
	part := make([]byte, min(a.size, block))
	if _, err := a.file.ReadAt(part, a.size-int64(len(part))); err != nil {
		return err
	}
	if _, rest, ok := bytes.Cut(part, []byte("\n")); ok {
		part = rest // skip the header or a partial row
	}
	var r row
	for line := range bytes.Lines(part) {
		if r.split(bytes.TrimSuffix(line, []byte("\n"))) != nil || len(r.fields) != len(columns) {
			continue // Open reports it
		}
		number := func(column string) int64 {
			i := slices.Index(columns, column)
			if i < 0 {
				return 0
			}
			n, _ := strconv.ParseInt(string(r.fields[i]), 10, 64)
			return n
		}
		s.Attempts, s.Sources = max(s.Attempts, int(number("attempt"))), max(s.Sources, int(number("source")))
		s.LastNS = max(s.LastNS, number("t_ns"))
	}
	return nil
}

// reopenAppender cuts a file after its last complete line, to append there. It creates files that older versions lack.
func reopenAppender(path string, columns []string) (*appender, error) {
	if columns != nil {
		if err := widen(path, columns); errors.Is(err, os.ErrNotExist) {
			return newAppender(path, columns)
		} else if err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	a := &appender{file: f, buf: bufio.NewWriterSize(f, bufferSize), synced: -1}
	if a.size, err = wholeLines(f); err == nil {
		err = f.Truncate(a.size)
	}
	if err == nil && a.size == 0 && columns != nil {
		err = a.header(columns)
	}
	return a, err
}

// widen adds columns to a file that an older version wrote; they are empty in its rows.
func widen(path string, columns []string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := wholeLines(f)
	if err != nil {
		return err
	}
	lines := bufio.NewReader(io.NewSectionReader(f, 0, size))
	header, err := lines.ReadString('\n')
	has := strings.Split(strings.TrimSuffix(header, "\n"), ",")
	switch {
	case errors.Is(err, io.EOF) || slices.Equal(has, columns): // an empty file gets its header later
		return nil
	case err != nil:
		return err
	case len(has) > len(columns) || !slices.Equal(has, columns[:len(has)]):
		return fault.New(fault.BadRecord, "start a new run with the plan that `llmparity reproduce` writes",
			"%s: can't resume: its columns differ from this version's", path)
	}
	return whole.Write(path, func(to io.Writer) error {
		out := bufio.NewWriter(to)
		out.WriteString(strings.Join(columns, ",") + "\n")
		for {
			row, err := lines.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return out.Flush()
			}
			if err != nil {
				return err
			}
			out.Write(bytes.TrimSuffix(row, []byte("\n")))
			out.WriteString(strings.Repeat(",", len(columns)-len(has)) + "\n")
		}
	})
}

// repoint updates the link latest, if there is one.
func repoint(dir string) error {
	root := filepath.Dir(dir)
	if info, err := os.Lstat(filepath.Join(root, "latest")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return nil
	}
	return pointLatest(root, dir)
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
