package run

import (
	"io"
	"slices"
	"sync"
	"time"

	"llmparity/internal/record"
)

// relay hands what a session tells, and what is read of it, to the recording of the attempt that goes on. What stands
// for as long as the session does is told again to each attempt that takes it over, so that every attempt in the record
// stands for itself. Between attempts readings go nowhere.
type relay struct {
	mu       sync.Mutex
	rec      *record.Recording // nil between attempts
	since    time.Time         // when it began
	sources  []record.Source   // by the sampler's numbers less one
	ids      map[int]int       // what the recording calls them
	serving  bool              // the model is loaded: what is warned of from here on is of the attempt alone
	events   []record.Event    // that stand
	warnings []record.Warning  // that stand
	late     []record.Warning  // that came between attempts
}

// begin turns to the recording of an attempt. What was begun to be read before is none of its.
func (r *relay) begin(rec *record.Recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rec, r.since, r.ids = rec, time.Now(), map[int]int{}
	for _, e := range r.events {
		rec.Event(e)
	}
	for _, w := range append(slices.Clone(r.warnings), r.late...) {
		rec.Warn(w)
	}
	r.late = nil
}

// end turns away from it.
func (r *relay) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rec = nil
}

func (r *relay) serve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.serving = true
}

// Source numbers a source for the sampler and announces it.
func (r *relay) Source(s record.Source) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(r.sources, s)
	id := len(r.sources)
	if r.rec != nil {
		r.ids[id] = r.rec.Source(s)
	}
	return id
}

// Sample writes a reading. A source of an earlier attempt is announced once it is read in this one: it may have ended.
func (r *relay) Sample(source int, s record.Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec == nil || s.Begin.Before(r.since) {
		return
	}
	id, known := r.ids[source]
	if !known {
		id = r.rec.Source(r.sources[source-1])
		r.ids[source] = id
	}
	r.rec.Sample(id, s)
}

// Total writes a sum over processes.
func (r *relay) Total(t record.Total) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec != nil && !t.Begin.Before(r.since) {
		r.rec.Total(t)
	}
}

// Span writes a stage of the load.
func (r *relay) Span(s record.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec != nil {
		r.rec.Span(s)
	}
}

// Event writes what the engine learned. What it is, what it computes on and how its clocks go stands.
func (r *relay) Event(e record.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Engine != nil || e.Device != nil || e.Clock != nil {
		r.events = append(r.events, e)
	}
	if r.rec != nil {
		r.rec.Event(e)
	}
}

// engine is what the session said last that it is.
func (r *relay) engine() (record.EngineInfo, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.events) {
		if e.Engine != nil {
			return *e.Engine, true
		}
	}
	return record.EngineInfo{}, false
}

// Warn writes what a reader of the figures must know.
func (r *relay) Warn(w record.Warning) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.serving:
		r.warnings = append(r.warnings, w)
	case r.rec == nil:
		r.late = append(r.late, w)
	}
	if r.rec != nil {
		r.rec.Warn(w)
	}
}

// stand writes a warning that is said once a session, whenever that is, and holds for all that comes.
func (r *relay) stand(w record.Warning) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, w)
	if r.rec != nil {
		r.rec.Warn(w)
	}
}

// Log opens a log, which is the session's and lies with those of the attempt that opened it.
func (r *relay) Log(name string) io.WriteCloser {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rec == nil {
		return nowhere{io.Discard}
	}
	return r.rec.Log(name)
}

type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }
