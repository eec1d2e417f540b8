package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/fault"
)

// Scan reads what a run folder has, without changing it. A run that goes on can be scanned too.
func Scan(dir string) (*State, error) {
	s, err := newState(dir)
	if err != nil {
		return nil, err
	}
	journal, err := os.Open(filepath.Join(dir, journalFile))
	if err != nil {
		return nil, notARun(err, dir)
	}
	defer journal.Close()
	end, err := wholeLines(journal)
	if err != nil {
		return nil, notARun(err, dir)
	}
	return s, s.scan(journal, end)
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
	s := &State{Dir: dir, Meta: r.Meta, Status: Interrupted}
	if err := readJSON(filepath.Join(dir, envFile), &s.Environment); err != nil {
		return nil, notARun(err, dir)
	}
	if s.Plan, err = os.ReadFile(filepath.Join(dir, planFile)); err != nil {
		return nil, notARun(err, dir)
	}
	s.empty()
	return s, nil
}

// empty forgets what the journal said.
func (s *State) empty() {
	s.Status, s.Resumes, s.Attempts, s.Sources, s.LastNS = Interrupted, 0, 0, 0, 0
	s.cells, s.begun, s.since = map[int]*cellState{}, map[int]Commit{}, indexLine{}
	s.engines = map[ran]stretchOf{}
}

// scan reads the journal up to a byte: the indexes that it has, and what comes behind the last of them. One whose
// indexes can't be used is read as a whole, which takes a hundred times as long.
func (s *State) scan(journal io.ReaderAt, end int64) error {
	from, ok := s.byIndex(journal, end)
	if !ok {
		s.empty()
		from = 0
	}
	return s.lines(journal, from, end)
}

// lines reads the journal's lines between two bytes.
func (s *State) lines(journal io.ReaderAt, from, end int64) error {
	in := bufio.NewReaderSize(io.NewSectionReader(journal, from, end-from), 256<<10)
	var long []byte
	for at := from; ; {
		var line []byte
		var err error
		line, long, err = readLine(in, long)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var e entry
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err == nil {
			err = s.line(&e, at, len(line))
		}
		if err != nil {
			return fault.Wrap(fault.BadRecord, err, "", "%s at byte %d", filepath.Join(s.Dir, journalFile), at)
		}
		at += int64(len(line)) + 1
	}
}

// line takes in a line of the journal, which begins at a byte and has so many.
func (s *State) line(e *entry, at int64, size int) error {
	s.LastNS = max(s.LastNS, e.T)
	s.Attempts = max(s.Attempts, e.Attempt)
	switch {
	case e.Cell != nil:
		of := ran{e.Cell.Engine, e.Cell.Setup}
		s.announce(e.Cell.ID, stretchOf{at, int64(size)}, of)
		s.since.addCell(e.Cell.ID, stretchOf{at, int64(size)}, of)
	case e.Begin != nil:
		b := e.Begin
		s.begun[e.Attempt] = Commit{Attempt: e.Attempt, Cell: b.Cell, Repetition: b.Repetition, Warmup: b.Warmup &&
			b.Scoring == nil,
			Scoring: b.Scoring != nil, OpenedBy: b.OpenedBy, lines: stretchOf{first: at}}
	case e.End != nil:
		c, ok := s.begun[e.Attempt]
		if !ok {
			return s.endsAgain(e.Attempt)
		}
		c.Status, c.Class = e.End.Status, e.End.Class
		c.lines.size = at + int64(size) + 1 - c.lines.first
		if rows := e.End.Tokens; len(rows) == 2 && rows[0] >= 0 && rows[1] >= 0 {
			c.tokens = stretchOf{rows[0], rows[1]}
		}
		s.commit(c)
		s.since.Commits = append(s.since.Commits, s.since.row(c)...)
	case e.Event != nil && e.Event.Engine != nil:
		if c, ok := s.begun[e.Attempt]; ok {
			c.engine = stretchOf{at, int64(size)}
			s.begun[e.Attempt] = c
		}
	case e.Source != nil:
		s.Sources = max(s.Sources, e.Source.ID)
	case e.Prediction != nil:
		s.predict(e.Prediction.Cell)
		s.since.Predicted = append(s.since.Predicted, int64(e.Prediction.Cell))
	case e.Risk != nil:
		s.judge(e.Risk.Cell)
		s.since.Judged = append(s.since.Judged, int64(e.Risk.Cell))
	case e.Stop != nil:
		s.stop(e.Stop.Cell)
		s.since.Stopped = append(s.since.Stopped, int64(e.Stop.Cell))
	case e.Resumed != nil:
		s.Resumes++
		s.Status = Interrupted
	case e.Index != nil:
		s.since = indexLine{At: at} // what comes behind it is in none
	case e.Done != nil:
		s.Status = e.Done.Status
	}
	return nil
}

// endsAgain allows for a second end, which changes nothing. A writer does not look.
func (s *State) endsAgain(attempt int) error {
	for _, c := range s.cells {
		if slices.ContainsFunc(c.commits, func(c Commit) bool { return c.Attempt == attempt }) {
			return nil
		}
	}
	if s.cells == nil {
		return nil
	}
	return fmt.Errorf("attempt %d ends, and was never begun", attempt)
}

// forWriting is what a writer must know to write indexes. What cells there are is none of it, so that whoever has the
// state can read that while the writer writes.
func (s *State) forWriting() *State {
	w := *s
	w.cells, w.engines, w.begun = nil, nil, maps.Clone(s.begun)
	w.since = s.since.clone()
	return &w
}

func (s *State) cell(id int) *cellState {
	if s.cells == nil { // a writer's
		return &cellState{}
	}
	c := s.cells[id]
	if c == nil {
		c = &cellState{}
		s.cells[id] = c
	}
	return c
}

func (s *State) announce(id int, at stretchOf, of ran) {
	c := s.cell(id)
	c.at, c.of = at, of
}

func (s *State) commit(c Commit) {
	delete(s.begun, c.Attempt)
	of := s.cell(c.Cell)
	of.commits = append(of.commits, c)
	if c.engine.size > 0 && c.Status == OK && s.cells != nil { // one that failed may not have known all of itself
		s.engines[of.of] = c.engine
	}
}

func (s *State) predict(cell int) {
	s.cell(cell).predicted = true
}

func (s *State) judge(cell int) {
	s.cell(cell).judged = true
}

func (s *State) stop(cell int) {
	s.cell(cell).stopped = true
}

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
