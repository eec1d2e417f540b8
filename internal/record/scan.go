package record

import (
	"cmp"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/fault"
	"llmparity/internal/lines"
)

// State is what resuming a run needs to know about it; it has no readings.
type State struct {
	Dir         string
	Meta        Meta
	Environment Environment // at the start of the run
	Plan        []byte      // content of plan.yaml
	Status      Status      // Interrupted if the run's end is missing
	Resumes     int         // number of earlier resumptions
	// Attempts and Sources are the highest numbers ever used, committed or not.
	Attempts, Sources int
	LastNS            int64 // latest time

	run     Run
	cells   map[int]Cell
	commits map[int][]*Attempt // by cell
	engines map[ran]EngineInfo // latest report
}

// ran is an engine with its start settings.
type ran struct {
	engine string
	setup  int
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
	r := &Run{Dir: dir}
	if err := readJSON(filepath.Join(dir, metaFile), &r.Meta); err != nil {
		return nil, notARun(err, dir)
	}
	newer, err := r.checkSchema(filepath.Join(dir, metaFile))
	if err != nil {
		return nil, err
	}
	if newer {
		return nil, fault.New(fault.BadRecord, "resume it with llmparity "+writer(r.Meta.Tool)+" or newer",
			"%s was written by a newer llmparity (schema %s, this version writes %s)", dir, r.Meta.Schema, Schema)
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

// read reads the journal and tokens.csv.
func (s *State) read() error {
	s.run = *newRun(s.Dir)
	b := newBuilder(&s.run)
	if _, err := lines.Each(filepath.Join(s.Dir, journalFile), b.journal); err != nil {
		return unreadable(err, s.Dir)
	}
	if _, err := lines.EachRow(filepath.Join(s.Dir, tokensFile), b.token); err != nil {
		return unreadable(err, s.Dir)
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
			// a failed attempt may have reported less
			if c := s.cells[a.Cell]; e.Engine != nil && a.Status == OK {
				s.engines[ran{c.Engine, c.Setup}] = *e.Engine
			}
		}
	}
	return nil
}

// Cells returns the numbers of the announced cells, in order.
func (s *State) Cells() iter.Seq[int] { return slices.Values(slices.Sorted(maps.Keys(s.cells))) }

// Announced reports whether a cell is in the journal.
func (s *State) Announced(cell int) bool { return has(s.cells, cell) }

// Predicted reports whether the cell has a prediction.
func (s *State) Predicted(cell int) bool { return has(s.run.Predictions, cell) }

// Stopped reports whether --until-ci has stopped the cell.
func (s *State) Stopped(cell int) bool { return has(s.run.Stops, cell) }

func has[V any](m map[int]V, id int) bool {
	_, ok := m[id]
	return ok
}

// Cell returns a cell as it was last announced.
func (s *State) Cell(id int) (Cell, bool) {
	c, ok := s.cells[id]
	return c, ok
}

// Engine returns what an engine last reported in a successful attempt with the given start settings.
func (s *State) Engine(setup int, engine string) (EngineInfo, bool) {
	info, ok := s.engines[ran{engine, setup}]
	return info, ok
}

// Commits returns the attempts of a cell whose end is in the journal, in order of their beginning. Their rows are safe.
func (s *State) Commits(cell int) []*Attempt { return s.commits[cell] }
