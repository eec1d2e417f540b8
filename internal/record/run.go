package record

import (
	"math"
	"slices"
	"time"

	"llmparity/internal/fault"
)

// Run is a run folder as it was read.
type Run struct {
	Dir         string
	Meta        Meta
	Environment Environment
	Cells       []Cell
	Predictions map[int]Prediction // by cell
	Risks       map[int]Risk       // by cell
	Stops       map[int]Stop       // by cell: those that are repeated until a figure is known well enough
	Attempts    []*Attempt         // in the order in which they were begun
	Scorings    []*Attempt         // those that only score: none of their figures is a measurement
	Pieces      map[int]string     // texts of tokens that occur, by id; nil: not known
	Warnings    []Warning          // about the whole run, and what the reader found
	// those that were cut off or had failed, and were made again when the run was resumed
	Redone  []*Attempt
	Resumes []ResumedAt // each time that somebody went on with it
	Status  Status      // Interrupted where the run's own end is missing
}

// Attempt is one launch as it was read. Times are nanoseconds since the run's zero.
type Attempt struct {
	ID         int
	Cell       int
	Repetition int // from 1; 0 for a warm-up launch
	Warmup     bool
	Load1      float64
	Machine    *MachineState // just before; nil: an older run's
	OpenedBy   int           // the attempt that opened the session and loaded the model; 0: this one did
	opener     *Attempt
	Scoring    *Scoring // what it scores; nil for every attempt in Run.Attempts
	BeginNS    int64
	EndNS      int64
	ended      bool // it says so; else it was cut off
	Status     Status
	Class      Class
	Error      string
	Fault      fault.Kind // of one that was refused
	Cost       Cost
	StolenS    *float64 // of processors' time that a hypervisor gave to other machines meanwhile; nil: nobody told

	Phases   []PhaseSpan
	Stages   []NamedSpan // of the load
	Requests []*Request
	Sources  map[int]Source
	Events   []EventAt
	Warnings []Warning
	Samples  []SampleRow
	Totals   []TotalRow
	Metrics  []MetricRow
	Scores   []Score // of an attempt that scores, when all are there; one a position
}

// PhaseSpan is when a phase was.
type PhaseSpan struct {
	Name    Phase
	BeginNS int64
	EndNS   int64
}

// NamedSpan is a Span as it was read.
type NamedSpan struct {
	Name    string
	BeginNS int64
	EndNS   int64
	How     string
}

// EventAt is an Event as it was read.
type EventAt struct {
	NS int64
	Event
}

// Request is a request as it was read.
type Request struct {
	ID           int
	Phase        Phase // Warmup or Measure
	SentNS       int64
	ReturnedNS   int64
	PromptIDs    []int
	PromptTokens int // counted by the engine, where it tells no ids
	Generated    int // counted by the engine, where it told of pieces
	CachedTokens int // or CacheUntold
	Text         string
	Finish       string
	Reported     map[string]float64
	Spans        []NamedSpan
	Tokens       []TokenRow
	Slot         // in a traffic
}

// TokenRow is a Token as it was read.
type TokenRow struct {
	Index int
	ID    int
	NS    int64
}

// SampleRow is a row of samples.csv, sizes in MiB as they stand there; what a source does not read is NaN. A long run
// has a million of them, so what few rows have lies apart.
type SampleRow struct {
	Source        int
	NS, ReadNS    int64
	RSS, VMS, PSS float64
	rare          *rareRow // nil: it has none of that
}

// rareRow is what rows of the expensive methods alone have, and those at phase edges.
type rareRow struct {
	uss, swap, hwm float64
	edge           Phase
}

// USS is NaN where the source does not read it, as are Swap and HWM.
func (s SampleRow) USS() float64 { return s.others().uss }

// Swap is what of the process lies in swap.
func (s SampleRow) Swap() float64 { return s.others().swap }

// HWM is the highest RSS since the last phase edge, or since the process started where that can't be reset.
func (s SampleRow) HWM() float64 { return s.others().hwm }

// Edge is the phase that the reading ended, whose peak HWM is then; empty between phase edges.
func (s SampleRow) Edge() Phase { return s.others().edge }

func (s SampleRow) others() rareRow {
	if s.rare == nil {
		return rareRow{uss: math.NaN(), swap: math.NaN(), hwm: math.NaN()}
	}
	return *s.rare
}

// MetricRow is a row of metrics.csv: one named value of a reading.
type MetricRow struct {
	Source     int
	NS, ReadNS int64
	Name       string
	Value      float64 // in the unit that Name ends in
	Edge       Phase   // the phase that the reading ended
}

// TotalRow is a row of totals.csv, sizes in MiB; what the method does not read is NaN.
type TotalRow struct {
	Method                   string
	Processes                int
	NS, ReadNS               int64
	RSS, VMS, PSS, USS, Swap float64
	// Read is how much of PSS was read, and Low and High are its bounds; NaN where all of it was read.
	Read, Low, High float64
}

// Counted tells whether the attempt's figures may enter statistics.
func (a *Attempt) Counted() bool { return a.Status == OK && !a.Warmup }

// Launch is the attempt that opened the session: it has the baseline and the load. It is the attempt itself unless
// sessions are reused.
func (a *Attempt) Launch() *Attempt {
	if a.opener != nil {
		return a.opener
	}
	return a
}

// Phase finds a phase; false where the attempt never reached its end.
func (a *Attempt) Phase(p Phase) (PhaseSpan, bool) {
	for _, s := range a.Phases {
		if s.Name == p {
			return s, true
		}
	}
	return PhaseSpan{}, false
}

// AtEdge gives what a method's sources read under a name when a phase ended, by source; nothing where it was not read.
func (a *Attempt) AtEdge(p Phase, method, name string) map[int]float64 {
	out := map[int]float64{}
	for _, m := range a.Metrics {
		if m.Edge == p && m.Name == name && a.Sources[m.Source].Method == method {
			out[m.Source] = m.Value
		}
	}
	return out
}

// PeakRSS gives the highest RSS, in MiB, that each source's process had within a phase, by source; nothing where it was
// not read.
func (a *Attempt) PeakRSS(p Phase) map[int]float64 {
	out := map[int]float64{}
	for _, s := range a.Samples {
		if s.Edge() == p && !math.IsNaN(s.HWM()) {
			out[s.Source] = s.HWM()
		}
	}
	return out
}

// FailedRequest is how a request of a traffic ended that was not answered, where the launch went on: what it took is no
// answer's time.
const FailedRequest = "failed"

// Measured gives the requests of the measure phase that were answered.
func (a *Attempt) Measured() []*Request {
	var out []*Request
	for _, r := range a.Requests {
		if r.Phase == Measure && r.Finish != FailedRequest {
			out = append(out, r)
		}
	}
	return out
}

// Unanswered is how many requests of the measure phase failed while the launch went on.
func (a *Attempt) Unanswered() (n int) {
	for _, r := range a.Requests {
		if r.Phase == Measure && r.Finish == FailedRequest {
			n++
		}
	}
	return n
}

// Device is what the engine computed on, and whether it said so: the last that it said, when it knew best.
func (a *Attempt) Device() (Device, bool) {
	for _, e := range slices.Backward(a.Events) {
		if e.Device != nil {
			return *e.Device, true
		}
	}
	return Device{}, false
}

// Engine is what ran, and whether it said so.
func (a *Attempt) Engine() (EngineInfo, bool) {
	for _, e := range a.Events {
		if e.Engine != nil {
			return *e.Engine, true
		}
	}
	return EngineInfo{}, false
}

// Prompted is how many tokens the prompt had; 0: not known.
func (r *Request) Prompted() int { return max(len(r.PromptIDs), r.PromptTokens) }

// Tokened is how many tokens were generated.
func (r *Request) Tokened() int {
	if r.Generated > 0 {
		return r.Generated
	}
	return len(r.Tokens)
}

// Span finds a request's span.
func (r *Request) Span(name string) (NamedSpan, bool) {
	for _, s := range r.Spans {
		if s.Name == name {
			return s, true
		}
	}
	return NamedSpan{}, false
}

// Duration is the length of the span.
func (s NamedSpan) Duration() time.Duration { return time.Duration(s.EndNS - s.BeginNS) }

// Duration is the length of the phase.
func (s PhaseSpan) Duration() time.Duration { return time.Duration(s.EndNS - s.BeginNS) }

// CellByID finds a cell; the zero cell where there is none.
func (r *Run) CellByID(id int) Cell {
	for _, c := range r.Cells {
		if c.ID == id {
			return c
		}
	}
	return Cell{}
}
