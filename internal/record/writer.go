package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/lines"
	"llmparity/internal/kit/whole"
)

// A kill loses at most the rows of the last flushAfter of an unfinished attempt. The first write after flushAfter hands
// rows to the system, so that sampling needs no second wake-up; flushAtLast is for when no write follows.
const (
	flushAfter  = 200 * time.Millisecond
	flushAtLast = time.Second
)

// Writer writes a run folder while the run happens. It keeps its first error, returns it from every later call, and
// closes Failed; the folder stays readable.
type Writer struct {
	dir   string
	meta  Meta
	clock clock
	lock  *os.File

	mu     sync.Mutex
	err    error
	failed chan struct{}
	files  [len(growing)]*lines.Appender
	line   []byte // reused for CSV rows

	attempts int
	sources  int

	setBack int64 // how far the clock was behind the record's last line when it was reopened

	dirty  time.Time   // when the oldest unflushed row was written; zero: none
	atLast *time.Timer // nil: not set. It is never stopped early: resetting a timer wakes a thread
}

// Writable returns an error if no run folder can be created in root.
func Writable(root string) error {
	dir, err := newFolder(root)
	if err == nil {
		err = os.Remove(dir)
	}
	return writeError(err, root)
}

// newFolder makes a hidden folder in root.
func newFolder(root string) (string, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(root, ".new-*")
}

// Create makes the folder <root>/<name>-<time> with everything known before the first cell, and points <root>/latest at
// it. The folder appears complete.
func Create(root string, meta Meta, env Environment, plan []byte) (*Writer, error) {
	meta.Schema = Schema
	aside, err := newFolder(root)
	if err != nil {
		return nil, writeError(err, root)
	}
	w := &Writer{dir: aside, meta: meta, clock: clock{meta.Started, meta.Started}, failed: make(chan struct{})}
	if err = w.open("name another folder with --out", lines.Create); err == nil {
		err = whole.JSON(filepath.Join(w.dir, metaFile), meta)
	}
	if err == nil {
		err = whole.JSON(filepath.Join(w.dir, envFile), env)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, planFile), plan, 0o644)
	}
	if err == nil {
		err = w.publish(root, meta)
	}
	if err != nil {
		w.closeFiles()
		_ = os.RemoveAll(w.dir) // it has no measurements
		return nil, writeError(err, root)
	}
	return w, nil
}

// publish gives the folder the next free name.
func (w *Writer) publish(root string, meta Meta) error {
	if err := os.Chmod(w.dir, 0o755); err != nil {
		return err
	}
	base := filepath.Join(root, meta.Name+"-"+meta.Started.Format("20060102-150405"))
	for n := 1; ; n++ {
		dir := base
		if n > 1 {
			dir = fmt.Sprintf("%s-%d", base, n)
		}
		if _, err := os.Lstat(dir); err == nil {
			continue
		}
		err := os.Rename(w.dir, dir)
		if errors.Is(err, os.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) {
			continue // another process was faster
		}
		if err != nil {
			return err
		}
		w.dir = dir
		return pointLatest(root, dir)
	}
}

// open locks the folder and opens the files that only grow. do says what to do if another run holds the lock.
func (w *Writer) open(do string, file func(path string, columns []string) (*lines.Appender, error)) (err error) {
	if w.lock, err = lock(filepath.Join(w.dir, lockFile), do); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(w.dir, logsDir), 0o755); err != nil {
		return err
	}
	for i, f := range growing {
		if w.files[i], err = file(filepath.Join(w.dir, f.name), f.columns); err != nil {
			return err
		}
	}
	return nil
}

// lock keeps two runs out of one folder.
func lock(path, do string) (*os.File, error) {
	f, err := whole.TryLock(path)
	if errors.Is(err, whole.ErrBusy) {
		return nil, fault.New(fault.Unwritable, do, "another run is writing to this folder (%s is locked)", path)
	} else if err == nil {
		err = f.Truncate(0)
		_, wrote := fmt.Fprintln(f, os.Getpid())
		err = errors.Join(err, wrote)
	}
	return f, err
}

// running returns the process that writes the run in a folder; 0: none.
func running(dir string) int {
	path := filepath.Join(dir, lockFile)
	release, free := whole.Claim(path)
	release()
	text, err := os.ReadFile(path)
	if free || err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

// pointLatest replaces the link atomically.
func pointLatest(root, dir string) error {
	tmp := filepath.Join(root, ".latest-"+filepath.Base(dir))
	_ = os.Remove(tmp) // left over if a run was killed between the next two steps
	if err := os.Symlink(filepath.Base(dir), tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(root, "latest")); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return nil
}

// Dir returns the run folder.
func (w *Writer) Dir() string { return w.dir }

// Failed is closed at the first error, which Err then returns.
func (w *Writer) Failed() <-chan struct{} { return w.failed }

// Err returns the first error, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Cell announces a cell.
func (w *Writer) Cell(c Cell) { w.put(entry{Cell: &c}) }

// Predict records the prediction of an announced cell.
func (w *Writer) Predict(p Prediction) { w.put(entry{Prediction: &p}) }

// Risk records whether an announced cell's memory fits.
func (w *Writer) Risk(r Risk) { w.put(entry{Risk: &r}) }

// Stop records why a cell gets no more repetitions.
func (w *Writer) Stop(s Stop) { w.put(entry{Stop: &s}) }

// Warn records a warning about the whole run.
func (w *Writer) Warn(warning Warning) { w.put(entry{Warning: &warning}) }

// Close writes the status of the run and closes the folder.
func (w *Writer) Close(status Status) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.putLocked(entry{Done: &doneEntry{Status: status}})
	w.sync()
	w.builds()
	w.closeFiles()
	return w.err
}

func (w *Writer) closeFiles() {
	if w.atLast != nil {
		w.atLast.Stop() // a timer that has just fired finds nothing to flush
	}
	for _, a := range w.files {
		if a != nil {
			_ = a.Close() // flushed and synced before
		}
	}
	if w.lock != nil {
		_ = w.lock.Close()
	}
}

func (w *Writer) put(e entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.putLocked(e)
}

func (w *Writer) putLocked(e entry) {
	now := time.Now()
	e.T, e.Time = w.clock.ns(now), string(w.clock.stamp(nil, now))
	line, err := json.Marshal(e)
	if err != nil {
		w.fail(fmt.Errorf("encoding a journal line: %w", err))
		return
	}
	if w.files[toJournal].Available() <= len(line) {
		w.flush() // in order: rows reach the disk before the lines about them
	}
	w.write(toJournal, append(line, '\n'))
}

func (w *Writer) write(to int, line []byte) {
	if w.err != nil {
		return
	}
	if err := w.files[to].Write(line); err != nil {
		w.fail(err)
		return
	}
	now := time.Now()
	switch {
	case w.dirty.IsZero():
		w.dirty = now
		if w.atLast == nil {
			w.atLast = time.AfterFunc(flushAtLast, w.flushAtLast)
		}
	case now.Sub(w.dirty) >= flushAfter:
		w.flush()
	}
}

func (w *Writer) fail(err error) {
	if w.err == nil && err != nil {
		w.err = writeError(err, w.dir)
		close(w.failed)
	}
}

// flushAtLast flushes rows after which nothing was written.
func (w *Writer) flushAtLast() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.atLast = nil
	if !w.dirty.IsZero() {
		w.flush()
	}
}

// flush hands rows to the system before the journal, whose lines may refer to them.
func (w *Writer) flush() {
	w.dirty = time.Time{}
	for _, a := range w.files {
		if w.err == nil {
			w.fail(a.Flush())
		}
	}
}

func (w *Writer) sync() {
	w.flush()
	for _, a := range w.files {
		if w.err == nil {
			w.fail(a.Sync())
		}
	}
}

// writeError makes an error of the file system one that the user can act on.
func writeError(err error, dir string) error {
	return fault.WriteError(err, dir, "name another folder with --out; what was measured so far stays readable")
}
