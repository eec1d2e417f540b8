package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
		err = whole.JSON(filepath.Join(w.dir, MetaFile), meta)
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

// latest is the link to the newest run folder.
const latest = "latest"

// publish gives the folder the next free name, and points latest at it.
func (w *Writer) publish(root string, meta Meta) error {
	if err := os.Chmod(w.dir, 0o755); err != nil {
		return err
	}
	dir, err := whole.NextFree(w.dir, filepath.Join(root, meta.Name+"-"+meta.Started.Format("20060102-150405")))
	if err != nil {
		return err
	}
	w.dir = dir
	return whole.Link(filepath.Base(dir), filepath.Join(root, latest))
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
	f, err := whole.Hold(path)
	if errors.Is(err, whole.ErrBusy) {
		return nil, fault.New(fault.Unwritable, do, "another run is writing to this folder (%s is locked)", path)
	}
	return f, err
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

// Resumed records that this process resumes the run, with warnings about what changed. It must come first after Reopen.
func (w *Writer) Resumed(r Resumed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.SetBackNS = w.setBack
	w.putLocked(entry{Resumed: &r})
	if len(r.Changed) > 0 {
		var all []string
		for _, d := range r.Changed {
			all = append(all, d.String())
		}
		w.putLocked(entry{Warning: &Warning{Code: "resumed-elsewhere",
			Text: "changed between the start of the run and its resumption: " + strings.Join(all, "; ")}})
	}
	if r.SetBackNS > 0 {
		back := Warnf("clock-set-back", "the machine's clock was set back: on resuming it was %.1f s behind the last "+
			"line of the record; times in the record continue from that line", float64(r.SetBackNS)/1e9)
		w.putLocked(entry{Warning: &back})
	}
	w.sync()
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

// Pieces adds texts of tokens, by id.
func (w *Writer) Pieces(texts map[int]string) {
	if len(texts) == 0 || w.Err() != nil {
		return
	}
	path := filepath.Join(w.dir, piecesFile)
	all := map[int]string{}
	if readJSON(path, &all) != nil { // a resumed run has some
		all = map[int]string{}
	}
	maps.Copy(all, texts)
	err := whole.JSON(path, all)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(err)
}

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

// builds writes run.json again, with the builds that ran.
func (w *Writer) builds() {
	if len(w.meta.Engines) > 0 && w.err == nil {
		w.fail(whole.JSON(filepath.Join(w.dir, MetaFile), w.meta))
	}
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

const timestampLayout = "2006-01-02T15:04:05.000000Z07:00"

// clock converts times to nanoseconds since the start of the run, by their monotonic reading.
type clock struct {
	zero time.Time // start of the run on this process's monotonic clock
	wall time.Time // start of the run by the wall clock
}

func (c clock) ns(t time.Time) int64 { return int64(t.Sub(c.zero)) }

// stamp appends the wall-clock time at the start plus the monotonic difference, so rows never go backwards when
// somebody sets the clock.
func (c clock) stamp(line []byte, t time.Time) []byte {
	return c.wall.Add(t.Sub(c.zero)).AppendFormat(line, timestampLayout)
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
