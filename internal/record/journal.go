package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/lines"
)

// entry is a line of journal.jsonl: exactly one of the pointers is set.
type entry struct {
	T          int64       `json:"t_ns"`              // nanoseconds since the start of the run
	Time       string      `json:"time"`              // the same as wall-clock time
	Attempt    int         `json:"attempt,omitempty"` // number of the attempt
	Cell       *Cell       `json:"cell,omitempty"`
	Begin      *Beginning  `json:"begin,omitempty"`
	Source     *sourceLine `json:"source,omitempty"`
	Phase      *PhaseSpan  `json:"phase,omitempty"`
	Span       *spanLine   `json:"span,omitempty"`
	Request    *requestRow `json:"request,omitempty"`
	Event      *Event      `json:"event,omitempty"`
	Warning    *Warning    `json:"warning,omitempty"`
	End        *endEntry   `json:"end,omitempty"`
	Prediction *Prediction `json:"prediction,omitempty"`
	Risk       *Risk       `json:"risk,omitempty"`
	Done       *doneEntry  `json:"done,omitempty"`
	Resumed    *Resumed    `json:"resumed,omitempty"`
	Stop       *Stop       `json:"stop,omitempty"`
}

type sourceLine struct {
	ID int `json:"id"` // number of the source
	Source
}

type spanLine struct {
	Request int `json:"request,omitempty"` // number of the request; absent: a load stage
	NamedSpan
}

type requestRow struct {
	Request
	CachedTokens *int `json:"cached_tokens,omitempty"` // prompt tokens from a cache; absent: unknown
	Tokens       int  `json:"tokens"`                  // number of rows in tokens.csv
}

type endEntry struct {
	Status Status     `json:"status"`                   // ok, failed, interrupted or refused
	Class  Class      `json:"class,omitempty"`          // class of the failure
	Error  string     `json:"error,omitempty"`          // error message
	Fault  fault.Kind `json:"fault,omitempty"`          // class of the error of a refused launch; decides the exit code
	Cost   Cost       `json:"cost"`                     // cost of sampling
	Stolen *float64   `json:"stolen_seconds,omitempty"` // CPU time that a hypervisor gave to other machines, in seconds
	Tokens []int64    `json:"tokens_rows,omitempty"`    // first byte and length of its rows in tokens.csv
}

type doneEntry struct {
	Status Status `json:"status"`
}

// Resumed is a line of the journal: another process resumes the run here.
type Resumed struct {
	Tool    Tool         `json:"tool"`              // program that resumes the run
	Changed []Difference `json:"changed,omitempty"` // differences from the start of the run
	// SetBackNS is how far the machine's clock was behind the record's last line, in nanoseconds. Times in the record
	// continue from that line.
	SetBackNS int64 `json:"clock_set_back_ns,omitempty"`
}

// Difference is a property that changed.
type Difference struct {
	What string `json:"what"` // the property
	Was  string `json:"was"`  // at the start of the run
	Is   string `json:"is"`   // now
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s, was %s", d.What, cmp.Or(d.Is, "unknown"), cmp.Or(d.Was, "unknown"))
}

// ResumedAt is Resumed as it was read.
type ResumedAt struct {
	NS int64
	Resumed
}

// readJournal assembles a run from its journal. cut: the last line is incomplete, and left out.
func readJournal(r *Run) (b *builder, cut bool, err error) {
	b = &builder{run: r, attempts: map[int]*Attempt{}, cells: map[int]int{}, requests: map[requestKey]*Request{}}
	cut, err = lines.Each(filepath.Join(r.Dir, JournalFile), b.journal)
	return b, cut, err
}

// builder assembles a Run from lines.
type builder struct {
	run      *Run
	attempts map[int]*Attempt
	cells    map[int]int // announced cells: their index in the run
	requests map[requestKey]*Request
	// the attempts that the last rows of samples.csv, totals.csv and metrics.csv belong to
	lastSample, lastTotal, lastMetric *Attempt
	last                              highest
}

// highest has the highest numbers ever used, committed or not, and the latest time.
type highest struct {
	NS              int64
	Attempt, Source int
}

// requestKey identifies a request.
type requestKey struct{ attempt, request int }

func (b *builder) journal(line []byte) error {
	var e entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	b.last.NS, b.last.Attempt = max(b.last.NS, e.T), max(b.last.Attempt, e.Attempt)
	if e.Source != nil {
		b.last.Source = max(b.last.Source, e.Source.ID)
	}
	return b.entry(e)
}

func (b *builder) entry(e entry) error {
	r := b.run
	switch {
	case r.newer && e == entry{T: e.T, Time: e.Time, Attempt: e.Attempt}: // of a kind that this version does not know
	case e.Cell != nil:
		at, again := b.cells[e.Cell.ID]
		if !again {
			at = len(r.Cells)
			b.cells[e.Cell.ID], r.Cells = at, append(r.Cells, Cell{})
		}
		r.Cells[at] = *e.Cell // a later line about it knows more
	case e.Done != nil:
		r.Status = e.Done.Status
	case e.Stop != nil:
		r.Stops[e.Stop.Cell] = *e.Stop
	case e.Resumed != nil:
		r.Resumes = append(r.Resumes, ResumedAt{e.T, *e.Resumed})
		r.Status = Interrupted // until its end is read
	case e.Warning != nil && e.Attempt == 0:
		if !slices.Contains(r.Warnings, *e.Warning) { // a resumed run repeats its warnings
			r.Warnings = append(r.Warnings, *e.Warning)
		}
	case e.Prediction != nil:
		r.Predictions[e.Prediction.Cell] = *e.Prediction
	case e.Risk != nil:
		r.Risks[e.Risk.Cell] = *e.Risk
	case e.Begin != nil:
		return b.begin(e)
	default:
		return b.add(e)
	}
	return nil
}

func (b *builder) begin(e entry) error {
	if _, twice := b.attempts[e.Attempt]; twice || e.Attempt < 1 {
		return fmt.Errorf("attempt %d begins twice or has no number", e.Attempt)
	}
	if _, announced := b.cells[e.Begin.Cell]; !announced {
		return fmt.Errorf("attempt %d: cell %d is not announced", e.Attempt, e.Begin.Cell)
	}
	a := &Attempt{ID: e.Attempt, Beginning: *e.Begin, opener: b.attempts[e.Begin.OpenedBy], BeginNS: e.T, EndNS: e.T,
		Status: Interrupted, Sources: map[int]Source{}}
	b.attempts[a.ID] = a
	if a.Scoring != nil {
		b.run.Scorings = append(b.run.Scorings, a)
		return nil
	}
	b.run.Attempts = append(b.run.Attempts, a)
	return nil
}

// add adds a line about an attempt.
func (b *builder) add(e entry) error {
	a := b.attempts[e.Attempt]
	if a == nil {
		return fmt.Errorf("attempt %d has no beginning", e.Attempt)
	}
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
		q := e.Request.request()
		a.Requests = append(a.Requests, q)
		// of two requests with the same number, the first has the spans and tokens
		if key := (requestKey{a.ID, q.ID}); b.requests[key] == nil {
			b.requests[key] = q
		}
	case e.Event != nil:
		a.Events = append(a.Events, *e.Event)
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

// request returns the request as a reader finds it, without tokens and spans.
func (r *requestRow) request() *Request {
	q := r.Request
	q.tokens = r.Tokens
	if q.CachedTokens = CacheUnknown; r.CachedTokens != nil {
		q.CachedTokens = *r.CachedTokens
	}
	return &q
}
