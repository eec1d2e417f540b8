package record

import (
	"slices"
	"time"

	"llmparity/internal/kit/fault"
)

// Run is a run folder as it was read.
type Run struct {
	Dir         string
	Meta        Meta
	Environment Environment
	Cells       []Cell
	Predictions map[int]Prediction // by cell
	Risks       map[int]Risk       // by cell
	Stops       map[int]Stop       // by cell: those with --until-ci
	Attempts    []*Attempt         // in order of their beginning
	Scorings    []*Attempt         // attempts that only score; they measure nothing
	Pieces      map[int]string     // texts of tokens by id; nil: unknown
	Warnings    []Warning          // about the whole run, including the reader's
	Redone      []*Attempt         // interrupted or failed attempts that a resumed run repeated
	Resumes     []ResumedAt
	Status      Status // Interrupted if the run's end is missing
	Running     int    // process that is writing it; 0: none
	newer       bool   // a newer version wrote it
}

// Attempt is one try at a launch as it was read. Times are nanoseconds since the start of the run.
type Attempt struct {
	ID int
	Beginning
	opener  *Attempt // the attempt that opened the session; nil: this one
	BeginNS int64
	EndNS   int64
	ended   bool // its end is in the journal
	Status  Status
	Class   Class
	Error   string
	Fault   fault.Kind // class of the error of a refused launch
	Cost    Cost
	StolenS *float64 // CPU seconds that a hypervisor gave to other machines; nil: unknown

	Phases   []PhaseSpan
	Stages   []NamedSpan // of the load
	Requests []*Request
	Sources  map[int]Source
	Events   []Event
	Warnings []Warning
	Samples  []SampleRow
	Totals   []TotalRow
	Metrics  []MetricRow
	Scores   []Score // one for each position; empty if some are missing
}

// PhaseSpan is the time of a phase.
type PhaseSpan struct {
	Name    Phase `json:"name"`     // baseline, load, warmup, measure, idle or unload
	BeginNS int64 `json:"begin_ns"` // nanoseconds since the start of the run
	EndNS   int64 `json:"end_ns"`   // nanoseconds since the start of the run
}

// NamedSpan is a Span as it was read.
type NamedSpan struct {
	Name    string `json:"name"`          // prefill, decode, or the load stage
	BeginNS int64  `json:"begin_ns"`      // nanoseconds since the start of the run
	EndNS   int64  `json:"end_ns"`        // nanoseconds since the start of the run
	How     string `json:"how,omitempty"` // how both ends were obtained
}

// Request is a request as it was read.
type Request struct {
	ID           int                `json:"id"`                      // number of the request in its attempt, from 1
	Phase        Phase              `json:"phase"`                   // warmup or measure
	SentNS       int64              `json:"sent_ns"`                 // nanoseconds since the start of the run
	ReturnedNS   int64              `json:"returned_ns"`             // end of the answer, as sent_ns
	PromptIDs    []int              `json:"prompt_ids"`              // token ids of the prompt
	PromptTokens int                `json:"prompt_tokens,omitempty"` // number of prompt tokens, if there are no ids
	Generated    int                `json:"generated,omitempty"`     // generated tokens, if the engine counts them
	CachedTokens int                `json:"-"`                       // or CacheUnknown
	Text         string             `json:"text"`                    // generated text
	Finish       string             `json:"finish"`                  // length, stop, cancelled or failed
	Reported     map[string]float64 `json:"reported,omitempty"`      // the engine's own counts and timings
	Spans        []NamedSpan        `json:"-"`
	Tokens       []TokenRow         `json:"-"`
	tokens       int                // number of tokens according to the journal
	Slot                            // position in a traffic
}

// TokenRow is a Token as it was read.
type TokenRow struct {
	Index int
	ID    int
	NS    int64
}

// SampleRow is a row of samples.csv. Sizes are in MiB; NaN: not read.
type SampleRow struct {
	Source         int
	NS, ReadNS     int64
	RSS, VMS, PSS  float64
	USS, Swap, HWM float64 // HWM is the highest RSS since the last phase edge, or since the start of the process
	Edge           Phase   // the phase that the reading ends, and that HWM belongs to; else empty
}

// MetricRow is a row of metrics.csv: one named value of a reading.
type MetricRow struct {
	Source     int
	NS, ReadNS int64
	Name       string
	Value      float64 // in the unit that Name ends in
	Edge       Phase   // the phase that the reading ends
}

// TotalRow is a row of totals.csv. Sizes are in MiB; NaN: not read.
type TotalRow struct {
	Method                   string
	Processes                int
	NS, ReadNS               int64
	RSS, VMS, PSS, USS, Swap float64
	// Read is the part of PSS that was read, Low and High are its bounds; NaN if all of it was read.
	Read, Low, High float64
}

// Counted reports whether the attempt's figures enter statistics.
func (a *Attempt) Counted() bool { return a.Status == OK && !a.Warmup && a.Scoring == nil }

// Launch returns the attempt that opened the session and has the baseline and the load: a itself, unless sessions are
// reused.
func (a *Attempt) Launch() *Attempt {
	if a.opener != nil {
		return a.opener
	}
	return a
}

// Phase returns a phase; false if it did not end.
func (a *Attempt) Phase(p Phase) (PhaseSpan, bool) {
	return first(a.Phases, func(s PhaseSpan) bool { return s.Name == p })
}

// first returns the first value of a list that is wanted.
func first[T any](list []T, wanted func(T) bool) (v T, ok bool) {
	if i := slices.IndexFunc(list, wanted); i >= 0 {
		return list[i], true
	}
	return v, false
}

// AtEdge returns the values with the given name that a method's sources read at the end of a phase, by source.
func (a *Attempt) AtEdge(p Phase, method, name string) map[int]float64 {
	out := map[int]float64{}
	for _, m := range a.Metrics {
		if m.Edge == p && m.Name == name && a.Sources[m.Source].Method == method {
			out[m.Source] = m.Value
		}
	}
	return out
}

// FailedRequest is the Finish of a request in a traffic that was not answered.
const FailedRequest = "failed"

// Measured returns the answered requests of the measure phase.
func (a *Attempt) Measured() []*Request {
	var out []*Request
	for _, r := range a.Requests {
		if r.Phase == Measure && r.Finish != FailedRequest {
			out = append(out, r)
		}
	}
	return out
}

// Unanswered counts the requests of the measure phase that failed.
func (a *Attempt) Unanswered() (n int) {
	for _, r := range a.Requests {
		if r.Phase == Measure && r.Finish == FailedRequest {
			n++
		}
	}
	return n
}

// Device returns the last device that the engine reported, because later reports know more.
func (a *Attempt) Device() (Device, bool) {
	for _, e := range slices.Backward(a.Events) {
		if e.Device != nil {
			return *e.Device, true
		}
	}
	return Device{}, false
}

// Engine returns what ran, if the engine reported it.
func (a *Attempt) Engine() (EngineInfo, bool) {
	for _, e := range a.Events {
		if e.Engine != nil {
			return *e.Engine, true
		}
	}
	return EngineInfo{}, false
}

// Prompted returns the number of prompt tokens; 0: unknown.
func (r *Request) Prompted() int { return max(len(r.PromptIDs), r.PromptTokens) }

// Tokened returns the number of generated tokens.
func (r *Request) Tokened() int {
	if r.Generated > 0 {
		return r.Generated
	}
	return len(r.Tokens)
}

// Span returns the span with the given name.
func (r *Request) Span(name string) (NamedSpan, bool) {
	return first(r.Spans, func(s NamedSpan) bool { return s.Name == name })
}

func (s PhaseSpan) Duration() time.Duration { return time.Duration(s.EndNS - s.BeginNS) }

// CellByID returns a cell, or the zero cell.
func (r *Run) CellByID(id int) Cell {
	c, _ := first(r.Cells, func(c Cell) bool { return c.ID == id })
	return c
}
