package bisect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/lines"
)

// Search is a search and what it needs. All that it measures is in its folder, so it can be continued.
type Search struct {
	Folder   string
	Question Question
	Rules    Rules
	// Measure makes a launch of a version, and returns the figure's value and the folder of its record.
	Measure func(ctx context.Context, version string) (value float64, record string, err error)
	Say     func(string)
}

// Question is what is asked: the first line of the folder's file. Another question needs another folder.
type Question struct {
	Versions []string `json:"versions"` // from good to bad
	Axis     string   `json:"axis"`
	Figure   string   `json:"figure"`
	How      []string `json:"how"` // what else decides what is measured
}

// entry is a line of the file: a round begins, or a launch has ended.
type entry struct {
	*Question
	Round   int      `json:"round"`
	Measure []string `json:"measure,omitempty"`
	Version string   `json:"version,omitempty"`
	Value   float64  `json:"value,omitempty"`
	Record  string   `json:"record,omitempty"`
	Failed  string   `json:"failed,omitempty"`
}

// Schema identifies the form of an answer as JSON.
const Schema = "llmparity.bisect/1"

// Answer is a conclusion with the names of versions.
type Answer struct {
	Schema string `json:"schema"`
	Question
	Conclusion
	GoodVersion string            `json:"good_version"`
	BadVersion  string            `json:"bad_version"`
	Launches    int               `json:"launches"`
	Measured    []string          `json:"measured"` // versions of which there are launches
	Skipped     map[string]string `json:"skipped,omitempty"`
}

// state is what the file says.
type state struct {
	*Search
	to      *lines.Appender
	known   Known
	round   int
	left    []int // versions of the round that are still to be measured
	failed  map[int]int
	skipped map[string]string
	measure int // launches so far, of failed ones too
}

// file is the name of the file in the folder.
const file = "launches.jsonl"

// Do searches until there is an answer.
func (s *Search) Do(ctx context.Context) (*Answer, error) {
	st, err := s.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = st.to.Close() }() // every line is flushed
	if n := len(st.known.Launches); n > 0 {
		s.Say(fmt.Sprintf("%d launches are in %s", n, s.Folder))
	}
	for {
		for len(st.left) > 0 {
			if err := st.launch(ctx); err != nil {
				return nil, err
			}
		}
		step := s.Rules.Next(st.known)
		if step.End != nil {
			return st.answer(*step.End), nil
		}
		if err := st.begin(step.Measure); err != nil {
			return nil, err
		}
	}
}

// begin begins a round.
func (st *state) begin(versions []int) error {
	st.round++
	st.left = Order(versions, st.round)
	return st.write(entry{Round: st.round, Measure: st.names(st.left)})
}

// launch makes the next launch of the round. What fails is tried once more; then the version is skipped.
func (st *state) launch(ctx context.Context) error {
	v := st.left[0]
	name := st.Question.Versions[v]
	value, record, err := st.Measure(ctx, name)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := entry{Round: st.round, Version: name, Value: value, Record: record}
	if err == nil && !(value > 0) {
		err = fault.New(fault.Usage, "choose another --figure", "%s is %g", st.Question.Figure, value)
	}
	if err != nil {
		e.Value, e.Failed = 0, fault.OneLine(err.Error())
		st.Say(fmt.Sprintf("round %d, %s: %s", st.round, name, e.Failed))
	} else {
		st.Say(fmt.Sprintf("round %d, %s: %.4g", st.round, name, value))
	}
	if err := st.write(e); err != nil {
		return err
	}
	st.take(e)
	if end := v == 0 || v == len(st.Question.Versions)-1; end && st.known.Skipped[v] {
		return fmt.Errorf("%s can't be measured: %w", name, err)
	}
	return nil
}

// take takes a launch that has ended.
func (st *state) take(e entry) {
	v := slices.Index(st.Question.Versions, e.Version)
	st.measure++
	if e.Failed == "" {
		delete(st.failed, v) // a version that can be measured is not skipped for a hiccup in each of two rounds
		st.known.Launches = append(st.known.Launches, Launch{v, e.Round, e.Value})
		st.left = slices.DeleteFunc(st.left, func(of int) bool { return of == v })
		return
	}
	if st.failed[v]++; st.failed[v] >= 2 {
		st.known.Skipped[v], st.skipped[e.Version] = true, e.Failed
		st.left = slices.DeleteFunc(st.left, func(of int) bool { return of == v })
	}
}

func (st *state) names(versions []int) (out []string) {
	for _, v := range versions {
		out = append(out, st.Question.Versions[v])
	}
	return out
}

func (st *state) answer(c Conclusion) *Answer {
	a := &Answer{Schema: Schema, Question: st.Question, Conclusion: c, GoodVersion: st.Question.Versions[c.Good],
		BadVersion: st.Question.Versions[c.Bad], Launches: st.measure, Skipped: st.skipped}
	for v, name := range st.Question.Versions {
		if slices.ContainsFunc(st.known.Launches, func(l Launch) bool { return l.Version == v }) {
			a.Measured = append(a.Measured, name)
		}
	}
	return a
}

// write appends a line, which survives a kill.
func (st *state) write(e entry) error {
	text, err := json.Marshal(e)
	if err == nil {
		err = errors.Join(st.to.Write(append(text, '\n')), st.to.Flush(), st.to.Sync())
	}
	return fault.WriteError(err, filepath.Join(st.Folder, file), "free space, or name another folder with --out")
}

// open reads what is in the folder, or begins.
func (s *Search) open() (*state, error) {
	st := &state{Search: s, failed: map[int]int{}, skipped: map[string]string{},
		known: Known{Versions: len(s.Question.Versions), Skipped: map[int]bool{}}}
	path := filepath.Join(s.Folder, file)
	if err := os.MkdirAll(s.Folder, 0o755); err != nil {
		return nil, fault.Wrap(fault.Unwritable, err, "name another folder with --out", "can't write into %s", s.Folder)
	}
	var err error
	st.to, err = lines.Create(path, nil)
	switch {
	case err == nil:
		return st, st.write(entry{Question: &s.Question})
	case !errors.Is(err, fs.ErrExist):
		return nil, fault.WriteError(err, path, "name another folder with --out")
	}
	if st.to, err = lines.Reopen(path, nil); err != nil {
		return nil, fmt.Errorf("continuing %s: %w", path, err)
	}
	if err := st.read(path); err != nil {
		return nil, errors.Join(err, st.to.Close())
	}
	return st, nil
}

// read takes the lines of an interrupted search for the same.
func (st *state) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	first := true
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		var e entry
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			return fault.Wrap(fault.BadRecord, err, "name another folder with --out", "%s", path)
		}
		switch {
		case first:
			if e.Question == nil || !same(*e.Question, st.Question) {
				return fault.New(fault.Usage, "repeat its command, or name another folder with --out",
					"%s is a search for something else", path)
			}
		case e.Version == "":
			st.round, st.left = e.Round, nil
			for _, name := range e.Measure {
				st.left = append(st.left, slices.Index(st.Question.Versions, name))
			}
		default:
			st.take(e)
		}
		first = false
	}
	if first { // killed before the first line was whole
		return st.write(entry{Question: &st.Question})
	}
	return nil
}

func same(a, b Question) bool {
	return slices.Equal(a.Versions, b.Versions) && slices.Equal(a.How, b.How) && a.Axis == b.Axis &&
		a.Figure == b.Figure
}
