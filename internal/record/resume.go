package record

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/fault"
)

// State is what a run folder has of a run: what whoever goes on with it must know.
type State struct {
	Dir         string
	Meta        Meta
	Environment Environment // when it was begun
	Plan        []byte      // plan.yaml, as it was written
	Status      Status      // how it ended; Interrupted where it does not say
	Resumes     int         // how often it was resumed before
	// Attempts and Sources are the highest numbers that were ever used, whether or not they are committed.
	Attempts, Sources int
	LastNS            int64 // the latest time in it

	cells   map[int]*cellState
	begun   map[int]Commit // what has no end, by attempt
	journal int64          // its whole lines end there
}

// Commit is an attempt whose end is in the journal: its rows are safe, whatever happens.
type Commit struct {
	Attempt    int
	Cell       int
	Repetition int // 0 for a warm-up launch
	Warmup     bool
	Scoring    bool
	OpenedBy   int
	Status     Status // Interrupted: it was cancelled
	Class      Class
}

type cellState struct {
	at        int64 // of its line in the journal
	size      int   // 0: it was not announced
	predicted bool
	judged    bool
	commits   []Commit
}

// Cells gives the numbers of the cells that were announced, in order.
func (s *State) Cells() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, id := range slices.Sorted(maps.Keys(s.cells)) {
			if s.cells[id].size > 0 && !yield(id) {
				return
			}
		}
	}
}

// Announced tells whether a cell is in the journal.
func (s *State) Announced(cell int) bool { return s.cells[cell] != nil && s.cells[cell].size > 0 }

// Predicted tells whether it was said what the cell's memory will be, and Judged whether that fits.
func (s *State) Predicted(cell int) bool { return s.cells[cell] != nil && s.cells[cell].predicted }

// Judged tells whether it was said that the cell's memory fits, or that it doesn't.
func (s *State) Judged(cell int) bool { return s.cells[cell] != nil && s.cells[cell].judged }

// Cell reads a cell as it was announced.
func (s *State) Cell(id int) (Cell, error) {
	c := s.cells[id]
	if c == nil || c.size == 0 {
		return Cell{}, fault.New(fault.BadRecord, "", "%s: cell %d was never announced", s.Dir, id)
	}
	path := filepath.Join(s.Dir, journalFile)
	f, err := os.Open(path)
	if err != nil {
		return Cell{}, notARun(err, s.Dir)
	}
	defer f.Close()
	line := make([]byte, c.size)
	if _, err := f.ReadAt(line, c.at); err != nil {
		return Cell{}, notARun(err, s.Dir)
	}
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return Cell{}, fault.Wrap(fault.BadRecord, err, "", "%s at byte %d", path, c.at)
	}
	if e.Cell == nil || e.Cell.ID != id {
		return Cell{}, fault.New(fault.BadRecord, "", "%s at byte %d: not cell %d's line", path, c.at, id)
	}
	return *e.Cell, nil
}

// Commits gives what is committed of a cell, in the order in which it was begun: warm-up launches, repetitions, and what was tried again.
func (s *State) Commits(cell int) []Commit {
	if c := s.cells[cell]; c != nil {
		return c.commits
	}
	return nil
}

// Committed gives the last attempt that a cell has of a repetition, which counts from 1; false where none is committed.
func (s *State) Committed(cell, repetition int) (Commit, bool) {
	for _, c := range slices.Backward(s.Commits(cell)) {
		if c.Repetition == repetition && !c.Warmup && !c.Scoring {
			return c, true
		}
	}
	return Commit{}, false
}

// Warmups is how many warm-up launches of a cell went well.
func (s *State) Warmups(cell int) (n int) {
	for _, c := range s.Commits(cell) {
		if c.Warmup && !c.Scoring && c.Status == OK {
			n++
		}
	}
	return n
}

// Resumed is a line of the journal: from here on another process has gone on with the run.
type Resumed struct {
	Tool    Tool         `json:"tool"`
	Changed []Difference `json:"changed,omitempty"` // of the machine, and of whatever else is not as it was
	// SetBackNS is by how much the machine's clock stands before the record's last line: somebody has set it back. The record's
	// own times go on where they were.
	SetBackNS int64 `json:"clock_set_back_ns,omitempty"`
}

// Difference is something that is not as it was.
type Difference struct {
	What string `json:"what"`
	Was  string `json:"was"`
	Is   string `json:"is"`
}

// ResumedAt is Resumed as it was read.
type ResumedAt struct {
	NS int64
	Resumed
}

// Resumed says in the record who goes on with it. It comes before everything else that is written after Reopen.
func (w *Writer) Resumed(r Resumed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.SetBackNS = w.setBack
	w.putLocked(entry{Resumed: &r})
	w.sync()
}

// Scan reads what a run folder has, without changing it. A run that goes on can be scanned too.
func Scan(dir string) (*State, error) {
	s := &State{Dir: dir, Status: Interrupted, cells: map[int]*cellState{}, begun: map[int]Commit{}}
	r := &Run{Dir: dir}
	if err := readJSON(filepath.Join(dir, metaFile), &r.Meta); err != nil {
		return nil, notARun(err, dir)
	}
	newer, err := r.checkSchema(filepath.Join(dir, metaFile))
	if err != nil {
		return nil, err
	}
	if newer {
		return nil, fault.New(fault.BadRecord, "resume it with llmparity "+writer(r.Meta.Tool)+", which wrote it, or a newer one",
			"%s was written by a newer llmparity: schema %s, this version writes %s", dir, r.Meta.Schema, Schema)
	}
	s.Meta = r.Meta
	if err := readJSON(filepath.Join(dir, envFile), &s.Environment); err != nil {
		return nil, notARun(err, dir)
	}
	if s.Plan, err = os.ReadFile(filepath.Join(dir, planFile)); err != nil {
		return nil, notARun(err, dir)
	}
	return s, s.scan(filepath.Join(dir, journalFile))
}

// scan reads the journal line by line.
func (s *State) scan(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return notARun(err, s.Dir)
	}
	defer f.Close()
	at := int64(0)
	_, err = eachLine(path, func(line []byte) error {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		err := s.line(&e, at, len(line))
		at += int64(len(line)) + 1
		s.journal = at
		return err
	})
	return err
}

func (s *State) cell(id int) *cellState {
	if s.cells[id] == nil {
		s.cells[id] = &cellState{}
	}
	return s.cells[id]
}

// line takes in a line of the journal, which begins at a byte and has so many.
func (s *State) line(e *entry, at int64, size int) error {
	s.LastNS = max(s.LastNS, e.T)
	s.Attempts = max(s.Attempts, e.Attempt)
	switch {
	case e.Cell != nil:
		c := s.cell(e.Cell.ID)
		c.at, c.size = at, size
	case e.Begin != nil:
		b := e.Begin
		s.begun[e.Attempt] = Commit{Attempt: e.Attempt, Cell: b.Cell, Repetition: b.Repetition, Warmup: b.Warmup && b.Scoring == nil,
			Scoring: b.Scoring != nil, OpenedBy: b.OpenedBy}
	case e.End != nil:
		c, ok := s.begun[e.Attempt]
		if !ok {
			return errors.New("the end of an attempt that was never begun")
		}
		c.Status, c.Class = e.End.Status, e.End.Class
		delete(s.begun, e.Attempt)
		of := s.cell(c.Cell)
		of.commits = append(of.commits, c)
	case e.Source != nil:
		s.Sources = max(s.Sources, e.Source.ID)
	case e.Prediction != nil:
		s.cell(e.Prediction.Cell).predicted = true
	case e.Risk != nil:
		s.cell(e.Risk.Cell).judged = true
	case e.Resumed != nil:
		s.Resumes++
		s.Status = Interrupted
	case e.Done != nil:
		s.Status = e.Done.Status
	}
	return nil
}

// Reopen goes on with a run that was interrupted: it locks the folder, cuts what a kill left of lines, and gives what is there. Attempts
// without an end stay as they are, for readers to see and never to count; numbers go on beyond all that were ever used, so that nobody
// else's rows become theirs. Time goes on from the record's last line, or from now where that is later.
func Reopen(dir string) (*Writer, *State, error) {
	dir, err := filepath.EvalSymlinks(dir) // results/latest may point elsewhere while we write
	if err != nil {
		return nil, nil, notARun(err, dir)
	}
	return nil, nil, fault.New(fault.Run, "", "%s: resuming is not there yet: %v", dir, io.ErrUnexpectedEOF)
}
