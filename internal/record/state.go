package record

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/lines"
)

// State is what resuming a run needs to know about it: the run without readings.
type State struct {
	*Run
	Plan []byte // content of plan.yaml
	Last highest

	at      map[int]int        // cells: their index in the run
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

// read reads the journal and tokens.csv.
func (s *State) read() error {
	b, _, err := readJournal(s.Run)
	if err != nil {
		return notARun(err, s.Dir)
	}
	if _, err := lines.EachRow(filepath.Join(s.Dir, tokensFile), tokenColumns, b.token); err != nil {
		return notARun(err, s.Dir)
	}
	s.Last, s.at, s.commits, s.engines = b.last, b.cells, map[int][]*Attempt{}, map[ran]EngineInfo{}
	ended := slices.DeleteFunc(slices.Concat(s.Attempts, s.Scorings), func(a *Attempt) bool { return !a.ended })
	slices.SortFunc(ended, func(a, b *Attempt) int { return cmp.Compare(a.ID, b.ID) })
	for _, a := range ended {
		s.commits[a.Cell] = append(s.commits[a.Cell], a)
		for _, e := range a.Events {
			// a failed attempt may have reported less
			if c, _ := s.Cell(a.Cell); e.Engine != nil && a.Status == OK {
				s.engines[ran{c.Engine, c.Setup}] = *e.Engine
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
	info, ok := s.engines[ran{engine, setup}]
	return info, ok
}

// Commits returns the attempts of a cell whose end is in the journal, in order of their beginning. Their rows are safe.
func (s *State) Commits(cell int) []*Attempt { return s.commits[cell] }
