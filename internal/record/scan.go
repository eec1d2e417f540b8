package record

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/fault"
)

// State is what a run folder has of a run, as it was when it was read: what whoever resumes it must know. Readings
// of memory are none of it.
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

	run     Run
	cells   map[int]Cell
	commits map[int][]*Attempt // by cell
	engines map[ran]EngineInfo // what each said last
}

// ran is an engine as a setup has it.
type ran struct {
	engine string
	setup  int
}

// Scan reads what a run folder has, without changing it. A run that goes on can be scanned too.
func Scan(dir string) (*State, error) {
	s, err := newState(dir)
	if err != nil {
		return nil, err
	}
	return s, s.read()
}

// newState has what the folder says apart from its journal.
func newState(dir string) (*State, error) {
	r := &Run{Dir: dir}
	if err := readJSON(filepath.Join(dir, metaFile), &r.Meta); err != nil {
		return nil, notARun(err, dir)
	}
	newer, err := r.checkSchema(filepath.Join(dir, metaFile))
	if err != nil {
		return nil, err
	}
	if newer {
		return nil, fault.New(fault.BadRecord, "resume it with llmparity "+writer(r.Meta.Tool)+
			", which wrote it, or a newer one",
			"%s was written by a newer llmparity: schema %s, this version writes %s", dir, r.Meta.Schema, Schema)
	}
	s := &State{Dir: dir, Meta: r.Meta}
	if err := readJSON(filepath.Join(dir, envFile), &s.Environment); err != nil {
		return nil, notARun(err, dir)
	}
	if s.Plan, err = os.ReadFile(filepath.Join(dir, planFile)); err != nil {
		return nil, notARun(err, dir)
	}
	return s, nil
}

// read goes through the journal and tokens.csv.
func (s *State) read() error {
	s.run = *newRun(s.Dir)
	b := newBuilder(&s.run)
	if _, err := eachLine(filepath.Join(s.Dir, journalFile), b.journal); err != nil {
		return err
	}
	if _, err := eachRow(filepath.Join(s.Dir, tokensFile), b.token); err != nil {
		return err
	}
	s.Status, s.Resumes = s.run.Status, len(s.run.Resumes)
	s.Attempts, s.Sources, s.LastNS = b.last.attempt, b.last.source, b.last.ns
	s.cells, s.commits, s.engines = map[int]Cell{}, map[int][]*Attempt{}, map[ran]EngineInfo{}
	for _, c := range s.run.Cells {
		s.cells[c.ID] = c
	}
	ended := slices.DeleteFunc(slices.Concat(s.run.Attempts, s.run.Scorings), func(a *Attempt) bool { return !a.ended })
	slices.SortFunc(ended, func(a, b *Attempt) int { return cmp.Compare(a.ID, b.ID) })
	for _, a := range ended {
		s.commits[a.Cell] = append(s.commits[a.Cell], a)
		for _, e := range a.Events {
			// one that failed may not have known all of itself
			if c := s.cells[a.Cell]; e.Engine != nil && a.Status == OK {
				s.engines[ran{c.Engine, c.Setup}] = *e.Engine
			}
		}
	}
	return nil
}

// Cells gives the numbers of the cells that were announced, in order.
func (s *State) Cells() iter.Seq[int] { return slices.Values(slices.Sorted(maps.Keys(s.cells))) }

// Announced tells whether a cell is in the journal.
func (s *State) Announced(cell int) bool { return has(s.cells, cell) }

// Predicted tells whether it was said what the cell's memory will be.
func (s *State) Predicted(cell int) bool { return has(s.run.Predictions, cell) }

// Stopped tells whether the cell's figure was known well enough, so that it is not repeated any more.
func (s *State) Stopped(cell int) bool { return has(s.run.Stops, cell) }

func has[V any](m map[int]V, id int) bool {
	_, ok := m[id]
	return ok
}

// Cell is a cell as it was announced last; false where it was not.
func (s *State) Cell(id int) (Cell, bool) {
	c, ok := s.cells[id]
	return c, ok
}

// Engine is what an engine last said of itself in an attempt of a setup's that went well; false where it said nothing.
func (s *State) Engine(setup int, engine string) (EngineInfo, bool) {
	info, ok := s.engines[ran{engine, setup}]
	return info, ok
}

// Commits gives the attempts of a cell whose end is in the journal, so that their rows are safe, in the order in
// which they were begun: warm-up launches, repetitions, and what was tried again.
func (s *State) Commits(cell int) []*Attempt { return s.commits[cell] }

// block is how much of a file is read at once to look at its end.
const block = 64 << 10

// wholeLines tells where a file's whole lines end: a kill may have cut the last, and a machine that lost its power may
// have left zeros.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	buffer := make([]byte, block)
	for end := info.Size(); end > 0; {
		start := max(0, end-block)
		part := buffer[:end-start]
		if _, err := f.ReadAt(part, start); err != nil {
			return 0, err
		}
		if zero := bytes.IndexByte(part, 0); zero >= 0 {
			end = start + int64(zero)
			continue
		}
		if newline := bytes.LastIndexByte(part, '\n'); newline >= 0 {
			return start + int64(newline) + 1, nil
		}
		end = start
	}
	return 0, nil
}
