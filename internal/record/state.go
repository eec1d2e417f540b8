package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/fault"
)

// State is what a run folder has of a run, as it was when it was read: what whoever goes on with it must know.
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
	engines map[ran]stretchOf // where each said last what it is
	begun   map[int]Commit    // what has no end, by attempt
	since   indexLine         // what came behind the last index, which is at since.At
}

// Commit is an attempt whose end is in the journal: its rows are safe, whatever happens.
type Commit struct {
	Attempt    int
	Cell       int
	Repetition int // 0 for a warm-up launch
	Warmup     bool
	Scoring    bool
	OpenedBy   int
	Status     Status // Interrupted: it was cancelled; empty: it has no end
	Class      Class
	engine     stretchOf // of the journal: the line in which the engine said what it is; empty: it didn't
	lines      stretchOf // of the journal, from its begin to its end
	tokens     stretchOf // of tokens.csv; empty: an older run's, or it has none
}

// stretchOf is a part of a file.
type stretchOf struct{ first, size int64 }

// ran is an engine as a setup has it.
type ran struct {
	engine string
	setup  int
}

type cellState struct {
	at        stretchOf // of the journal: its line; empty: it was not announced
	of        ran
	predicted bool
	judged    bool
	stopped   bool
	commits   []Commit
}

// Cells gives the numbers of the cells that were announced, in order.
func (s *State) Cells() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, id := range slices.Sorted(maps.Keys(s.cells)) {
			if s.cells[id].at.size > 0 && !yield(id) {
				return
			}
		}
	}
}

// Announced tells whether a cell is in the journal.
func (s *State) Announced(cell int) bool { return s.cells[cell] != nil && s.cells[cell].at.size > 0 }

// Predicted tells whether it was said what the cell's memory will be, and Judged whether that fits.
func (s *State) Predicted(cell int) bool { return s.cells[cell] != nil && s.cells[cell].predicted }

// Judged tells whether it was said that the cell's memory fits, or that it doesn't.
func (s *State) Judged(cell int) bool { return s.cells[cell] != nil && s.cells[cell].judged }

// Stopped tells whether the cell's figure was known well enough, so that it is not repeated any more.
func (s *State) Stopped(cell int) bool { return s.cells[cell] != nil && s.cells[cell].stopped }

// Cell reads a cell as it was announced.
func (s *State) Cell(id int) (Cell, error) {
	if !s.Announced(id) {
		return Cell{}, fault.New(fault.BadRecord, "", "%s: cell %d was never announced", s.Dir, id)
	}
	e, err := s.read(s.cells[id].at)
	if err == nil && (e.Cell == nil || e.Cell.ID != id) {
		err = fault.New(fault.BadRecord, "", "%s: what is at byte %d is not cell %d's line",
			filepath.Join(s.Dir, journalFile), s.cells[id].at.first, id)
	}
	if err != nil {
		return Cell{}, err
	}
	return *e.Cell, nil
}

// Engine reads what an engine last said of itself in an attempt of a setup's that went well; false where it said
// nothing.
func (s *State) Engine(setup int, engine string) (EngineInfo, bool, error) {
	at, ok := s.engines[ran{engine, setup}]
	if !ok {
		return EngineInfo{}, false, nil
	}
	e, err := s.read(at)
	if err == nil && (e.Event == nil || e.Event.Engine == nil) {
		err = fault.New(fault.BadRecord, "", "%s: at byte %d no engine tells what it is",
			filepath.Join(s.Dir, journalFile), at.first)
	}
	if err != nil {
		return EngineInfo{}, false, err
	}
	return *e.Event.Engine, true, nil
}

// Attempt reads what a committed attempt says in the journal, with its requests and their tokens; readings of memory
// are left out.
func (s *State) Attempt(c Commit) (*Attempt, error) {
	lines, err := s.part(journalFile, c.lines)
	if err != nil {
		return nil, err
	}
	b := newBuilder(&Run{Dir: s.Dir})
	b.cells[c.Cell] = cellKey{there: true}
	for line := range bytes.Lines(lines) {
		var e entry
		err := json.Unmarshal(line, &e)
		if err == nil && e.Attempt == c.Attempt {
			if e.Begin != nil {
				e.Begin.OpenedBy = 0 // which is not read
			}
			err = b.entry(e)
		}
		if err != nil {
			return nil, fault.Wrap(fault.BadRecord, err, "", "%s, attempt %d", filepath.Join(s.Dir, journalFile),
				c.Attempt)
		}
	}
	a := b.attempts[c.Attempt]
	if a == nil {
		return nil, fault.New(fault.BadRecord, "", "%s has no attempt %d where its index says",
			filepath.Join(s.Dir, journalFile), c.Attempt)
	}
	a.OpenedBy = c.OpenedBy
	rows, err := s.part(tokensFile, c.tokens)
	if err == nil {
		err = b.tokenRows(rows)
	}
	if err != nil {
		return nil, err
	}
	b.missing()
	return a, nil
}

// tokenRows takes in rows of tokens.csv that this version wrote.
func (b *builder) tokenRows(text []byte) error {
	var columns [][]byte
	for _, name := range tokenColumns {
		columns = append(columns, []byte(name))
	}
	h, err := newHeader(columns)
	if err != nil {
		return err
	}
	into := &stretches[TokenRow]{}
	add := b.token(into)(h, bytes.Count(text, []byte("\n")))
	var r row
	for line := range bytes.Lines(text) {
		err := r.split(bytes.TrimSuffix(line, []byte("\n")))
		if err == nil && len(r.fields) != len(columns) {
			err = fmt.Errorf("%d fields, the header has %d", len(r.fields), len(columns))
		}
		if err == nil {
			err = add(&r)
		}
		if err != nil {
			return fault.Wrap(fault.BadRecord, err, "", "%s", filepath.Join(b.run.Dir, tokensFile))
		}
	}
	into.deal()
	return nil
}

// read reads a line of the journal.
func (s *State) read(l stretchOf) (e entry, err error) {
	line, err := s.part(journalFile, l)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fault.Wrap(fault.BadRecord, err, "", "%s at byte %d", filepath.Join(s.Dir, journalFile), l.first)
	}
	return e, nil
}

// part reads a part of a file.
func (s *State) part(name string, of stretchOf) ([]byte, error) {
	path := filepath.Join(s.Dir, name)
	f, err := os.Open(path)
	if err != nil {
		return nil, notARun(err, s.Dir)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || of.first > info.Size() || of.size > info.Size()-of.first {
		return nil, fault.New(fault.BadRecord, "", "%s is shorter than the journal says: bytes %d to %d are not there",
			path, of.first, of.first+of.size)
	}
	text := make([]byte, of.size)
	if _, err := f.ReadAt(text, of.first); err != nil {
		return nil, notARun(err, s.Dir)
	}
	return text, nil
}

// Commits gives what is committed of a cell, in the order in which it was begun: warm-up launches, repetitions, and
// what was tried again.
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
