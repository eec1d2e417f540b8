package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"llmparity/internal/fault"
	"llmparity/internal/lines"
)

// Open reads a run folder, even while the run goes on or after it was killed: it ignores an incomplete last line, and
// attempts without an end are Interrupted. Any other invalid line is an error that names it.
func Open(dir string) (*Run, error) {
	r := newRun(dir)
	if err := readJSON(filepath.Join(dir, metaFile), &r.Meta); err != nil {
		return nil, notARun(err, dir)
	}
	newer, err := r.checkSchema(filepath.Join(dir, metaFile))
	if err != nil {
		return nil, err
	}
	if err := readJSON(filepath.Join(dir, envFile), &r.Environment); err != nil {
		return nil, notARun(err, dir)
	}
	b := newBuilder(r)
	b.newer = newer
	cut, err := lines.Each(filepath.Join(dir, journalFile), b.journal)
	if err != nil {
		return nil, unreadable(err, dir)
	}
	r.warnCut(cut, journalFile)
	if err := b.readRows(dir); err != nil {
		return nil, err
	}
	b.missing()
	b.wholeScores()
	b.redone()
	r.Warnings = append(r.Warnings, r.changes()...)
	r.readPieces(filepath.Join(dir, piecesFile))
	return r, nil
}

func newRun(dir string) *Run {
	return &Run{Dir: dir, Status: Interrupted, Predictions: map[int]Prediction{}, Risks: map[int]Risk{},
		Stops: map[int]Stop{}}
}

func notARun(err error, dir string) error {
	var missing *fs.PathError
	if errors.Is(err, os.ErrNotExist) && errors.As(err, &missing) {
		return fault.New(fault.BadRecord, "name a run folder, such as results/latest",
			"%s is not a run folder: it has no %s", dir, filepath.Base(missing.Path))
	}
	var cut *brokenJSON
	if errors.As(err, &cut) {
		return fault.Wrap(fault.BadRecord, cut.error,
			"copy the run folder again, or repeat the run",
			"%s is damaged", filepath.Join(dir, cut.file))
	}
	return fault.Wrap(fault.BadRecord, err, "", "can't read %s", dir)
}

// unreadable returns the error of an invalid line as it is, and of a missing file as that of a folder that is not a
// run.
func unreadable(err error, dir string) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return notARun(err, dir)
}

// brokenJSON is the error of a file that is not valid JSON.
type brokenJSON struct {
	error
	file string
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return &brokenJSON{err, filepath.Base(path)}
	}
	return nil
}

func (r *Run) warnCut(cut bool, file string) {
	if cut {
		r.Warnings = append(r.Warnings, Warnf("cut", "%s: incomplete last line ignored (the run was interrupted "+
			"while writing it)", file))
	}
}

// builder assembles a Run from lines.
type builder struct {
	run      *Run
	attempts map[int]*Attempt
	cells    map[int]int // announced cells: their index in the run
	requests map[requestKey]*Request
	tokens   map[*Request]int // number of tokens according to the journal
	newer    bool             // the run was written by a newer version
	// the attempts that the last rows of samples.csv, totals.csv and metrics.csv belong to
	lastSample, lastTotal, lastMetric *Attempt
	last                              struct { // highest values in the journal
		ns              int64
		attempt, source int
	}
}

func newBuilder(r *Run) *builder {
	return &builder{run: r, attempts: map[int]*Attempt{}, cells: map[int]int{}, requests: map[requestKey]*Request{},
		tokens: map[*Request]int{}}
}

// requestKey identifies a request.
type requestKey struct{ attempt, request int }

func (b *builder) attempt(id int64) (*Attempt, error) {
	a, ok := b.attempts[int(id)]
	if !ok {
		return nil, fmt.Errorf("attempt %d has no beginning", id)
	}
	return a, nil
}

// formerlyReused is the isolation that older runs have for reused sessions. It hides the isolation of their launches.
const formerlyReused = "reused"

func (b *builder) journal(line []byte) error {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	b.last.ns, b.last.attempt = max(b.last.ns, e.T), max(b.last.attempt, e.Attempt)
	if e.Source != nil {
		b.last.source = max(b.last.source, e.Source.ID)
	}
	return b.entry(e)
}

func (b *builder) entry(e entry) error {
	switch {
	case b.newer && e == entry{T: e.T, Time: e.Time, Attempt: e.Attempt}: // of a kind that this version does not know
		return nil
	case e.Cell != nil:
		if e.Cell.Isolation == formerlyReused {
			e.Cell.Isolation, e.Cell.Reused = "", true
		}
		at, again := b.cells[e.Cell.ID]
		if !again {
			at = len(b.run.Cells)
			b.cells[e.Cell.ID], b.run.Cells = at, append(b.run.Cells, Cell{})
		}
		b.run.Cells[at] = *e.Cell // a later line about it knows more
		return nil
	case e.Done != nil:
		b.run.Status = e.Done.Status
		return nil
	case e.Stop != nil:
		b.run.Stops[e.Stop.Cell] = *e.Stop
		return nil
	case e.Index != nil:
		return nil
	case e.Resumed != nil:
		b.run.Resumes = append(b.run.Resumes, ResumedAt{e.T, *e.Resumed})
		b.run.Status = Interrupted // until its end is read
		return nil
	case e.Warning != nil && e.Attempt == 0:
		if !slices.Contains(b.run.Warnings, *e.Warning) { // a resumed run repeats its warnings
			b.run.Warnings = append(b.run.Warnings, *e.Warning)
		}
		return nil
	case e.Begin != nil:
		return b.begin(e)
	case e.Prediction != nil:
		b.run.Predictions[e.Prediction.Cell] = *e.Prediction
		return nil
	case e.Risk != nil:
		b.run.Risks[e.Risk.Cell] = *e.Risk
		return nil
	}
	a, err := b.attempt(int64(e.Attempt))
	if err != nil {
		return err
	}
	return b.add(a, e)
}

func (b *builder) begin(e entry) error {
	if _, twice := b.attempts[e.Attempt]; twice || e.Attempt < 1 {
		return fmt.Errorf("attempt %d begins twice or has no number", e.Attempt)
	}
	if _, announced := b.cells[e.Begin.Cell]; !announced {
		return fmt.Errorf("attempt %d: cell %d is not announced", e.Attempt, e.Begin.Cell)
	}
	a := &Attempt{ID: e.Attempt, Cell: e.Begin.Cell, Repetition: e.Begin.Repetition, Warmup: e.Begin.Warmup,
		Load1:    e.Begin.Load1,
		OpenedBy: e.Begin.OpenedBy, opener: b.attempts[e.Begin.OpenedBy], BeginNS: e.T, EndNS: e.T, Status: Interrupted,
		Sources: map[int]Source{}, Scoring: e.Begin.Scoring, Machine: e.Begin.Machine}
	b.attempts[a.ID] = a
	if a.Scoring != nil {
		b.run.Scorings = append(b.run.Scorings, a)
		return nil
	}
	b.run.Attempts = append(b.run.Attempts, a)
	return nil
}

func (b *builder) add(a *Attempt, e entry) error {
	a.EndNS = e.T
	switch {
	case e.Source != nil:
		a.Sources[e.Source.ID] = e.Source.Source
	case e.Phase != nil:
		a.Phases = append(a.Phases, *e.Phase)
	case e.Span != nil:
		span := e.Span.NamedSpan
		if e.Span.Request == 0 {
			a.Stages = append(a.Stages, span)
			return nil
		}
		r := b.requests[requestKey{a.ID, e.Span.Request}]
		if r == nil {
			return fmt.Errorf("span %q belongs to request %d, which is missing", span.Name, e.Span.Request)
		}
		r.Spans = append(r.Spans, span)
	case e.Request != nil:
		b.request(a, e.Request.Tokens, e.Request.request())
	case e.Event != nil:
		a.Events = append(a.Events, EventAt{e.T, *e.Event})
	case e.Warning != nil:
		a.Warnings = append(a.Warnings, *e.Warning)
	case e.End != nil:
		a.ended = true
		a.Status, a.Class, a.Error, a.Cost, a.StolenS = e.End.Status, e.End.Class, e.End.Error, e.End.Cost, e.End.Stolen
		a.Fault = e.End.Fault
	default:
		return errors.New("unknown kind of line")
	}
	return nil
}

func (b *builder) request(a *Attempt, tokens int, r *Request) {
	a.Requests = append(a.Requests, r)
	b.tokens[r] = tokens
	// of two requests with the same number, the first has the spans and tokens
	if key := (requestKey{a.ID, r.ID}); b.requests[key] == nil {
		b.requests[key] = r
	}
}

// missing warns if tokens of requests are missing.
func (b *builder) missing() {
	for _, a := range b.run.Attempts {
		for _, q := range a.Requests {
			if want := b.tokens[q]; want != len(q.Tokens) {
				a.Warnings = append(a.Warnings, Warnf("tokens-missing",
					"request %d generated %d tokens; the record has %d", q.ID, want, len(q.Tokens)))
			}
		}
	}
}
