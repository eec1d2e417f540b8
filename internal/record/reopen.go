package record

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// Scan reads a run folder without changing it, even while the run goes on.
func Scan(dir string) (*State, error) {
	s, err := newState(dir)
	if err != nil {
		return nil, err
	}
	return s, s.read()
}

// newState reads everything but the journal.
func newState(dir string) (*State, error) {
	r, err := newRun(dir)
	if err != nil {
		return nil, err
	}
	if r.newer {
		return nil, fault.New(fault.BadRecord, "resume it with llmparity "+writer(r.Meta.Tool)+" or newer",
			"%s was written by a newer llmparity (schema %s, this version writes %s)", dir, r.Meta.Schema, Schema)
	}
	plan, err := os.ReadFile(filepath.Join(dir, planFile))
	if err != nil {
		return nil, notARun(err, dir)
	}
	return &State{Run: r, Plan: plan}, nil
}

// State is what resuming a run needs to know about it: the run without readings.
type State struct {
	*Run
	Plan []byte // content of plan.yaml
	Last highest

	at      map[int]int            // cells: their index in the run
	commits map[int][]*Attempt     // by cell
	engines map[started]EngineInfo // latest report
}

// started is an engine with its start settings.
type started struct {
	engine string
	setup  int
}

// read reads the journal and tokens.csv.
func (s *State) read() error {
	b, _, err := readJournal(s.Run)
	if err != nil {
		return notARun(err, s.Dir)
	}
	if _, err := lines.EachRow(filepath.Join(s.Dir, tokensFile), tokenColumns, b.token); err != nil {
		return notARun(err, s.Dir)
	}
	s.Last, s.at, s.commits, s.engines = b.last, b.cells, map[int][]*Attempt{}, map[started]EngineInfo{}
	ended := slices.DeleteFunc(slices.Concat(s.Attempts, s.Scorings), func(a *Attempt) bool { return !a.ended })
	slices.SortFunc(ended, func(a, b *Attempt) int { return cmp.Compare(a.ID, b.ID) })
	for _, a := range ended {
		s.commits[a.Cell] = append(s.commits[a.Cell], a)
		for _, e := range a.Events {
			// a failed attempt may have reported less
			if c, _ := s.Cell(a.Cell); e.Engine != nil && a.Status == OK {
				s.engines[started{c.Engine, c.Setup}] = *e.Engine
			}
		}
	}
	return nil
}

// Cell returns a cell as it was last announced.
func (s *State) Cell(id int) (Cell, bool) {
	if at, ok := s.at[id]; ok {
		return s.Cells[at], true
	}
	return Cell{}, false
}

// Engine returns what an engine last reported in a successful attempt with the given start settings.
func (s *State) Engine(setup int, engine string) (EngineInfo, bool) {
	info, ok := s.engines[started{engine, setup}]
	return info, ok
}

// Commits returns the attempts of a cell whose end is in the journal, in order of their beginning. Their rows are safe.
func (s *State) Commits(cell int) []*Attempt { return s.commits[cell] }
