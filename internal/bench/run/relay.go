package run

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// relay passes what a session reports, and readings of it, to the recording of the current attempt. It repeats what
// holds for the whole session to each attempt that takes the session over. Between attempts it drops readings.
type relay struct {
	mu       sync.Mutex
	rec      *record.Recording // nil between attempts
	since    time.Time         // start of the attempt
	sources  []record.Source   // by the sampler's number, less one
	ids      map[int]int       // the recording's number, by the sampler's
	serving  bool              // the model is loaded: later warnings concern one attempt only
	events   []record.Event    // that hold for the session
	warnings []record.Warning  // that hold for the session
	late     []record.Warning  // received between attempts
	model    models.Model      // adds to what the engine reports
	judged   *record.Device    // the last device that device returned

	memory *atomic.Int64             // last total RSS; nil: nobody asks
	read   map[string][]record.Total // by method, while the baseline settles; else nil
}

// lock returns what unlocks it again.
func (r *relay) lock() (unlock func()) {
	r.mu.Lock()
	return r.mu.Unlock
}

// begin switches to the recording of an attempt, which gets no reading that began before.
func (r *relay) begin(rec *record.Recording) {
	defer r.lock()()
	r.rec, r.since, r.ids = rec, time.Now(), map[int]int{}
	for _, e := range r.events {
		rec.Event(e)
	}
	for _, w := range append(slices.Clone(r.warnings), r.late...) {
		rec.Warn(w)
	}
	r.late = nil
}

// end detaches the recording.
func (r *relay) end() {
	defer r.lock()()
	r.rec = nil
}

func (r *relay) serve() {
	defer r.lock()()
	r.serving = true
}

// Source numbers a source for the sampler and announces it.
func (r *relay) Source(s record.Source) int {
	defer r.lock()()
	r.sources = append(r.sources, s)
	id := len(r.sources)
	if r.rec != nil {
		r.ids[id] = r.rec.Source(s)
	}
	return id
}

// pids are the processes of all sources so far.
func (r *relay) pids() (out []int) {
	defer r.lock()()
	for _, s := range r.sources {
		if s.PID > 0 && !slices.Contains(out, s.PID) {
			out = append(out, s.PID)
		}
	}
	return out
}

// Sample writes a reading. It announces sources of earlier attempts when they are first read, because they may have
// ended.
func (r *relay) Sample(source int, s record.Sample) {
	defer r.lock()()
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
	defer r.lock()()
	if r.rec != nil && !t.Begin.Before(r.since) {
		r.rec.Total(t)
	}
	if t.RSS == record.Absent {
		return
	}
	if r.memory != nil {
		r.memory.Store(t.RSS)
	}
	if r.read != nil {
		r.read[t.Method] = append(r.read[t.Method], t)
	}
}

// Span writes a load stage.
func (r *relay) Span(s record.Span) {
	defer r.lock()()
	if r.rec != nil {
		r.rec.Span(s)
	}
}

// Event writes an event. What the engine, its device and its clocks are holds for the session.
func (r *relay) Event(e record.Event) {
	defer r.lock()()
	if m := r.model; e.Engine != nil && (len(m.Policy) > 0 || m.Weights != "") {
		info := *e.Engine
		info.Policy = map[string]string{}
		maps.Copy(info.Policy, e.Engine.Policy)
		maps.Copy(info.Policy, m.Policy)
		info.Weights = cmp.Or(m.Weights, info.Weights)
		e.Engine = &info
	}
	if e.Engine != nil || e.Device != nil || e.Clock != nil {
		r.events = append(r.events, e)
	}
	if r.rec != nil {
		r.rec.Event(e)
	}
}

// engine returns the session's last report about its engine.
func (r *relay) engine() (record.EngineInfo, bool) {
	defer r.lock()()
	for _, e := range slices.Backward(r.events) {
		if e.Engine != nil {
			return *e.Engine, true
		}
	}
	return record.EngineInfo{}, false
}

// ran returns the session's last reports about its engine and its device; nil if there are none.
func (r *relay) ran() (info *record.EngineInfo, device *record.Device) {
	defer r.lock()()
	for _, e := range r.events {
		if e.Engine != nil {
			info = e.Engine
		}
		if e.Device != nil {
			device = e.Device
		}
	}
	return info, device
}

// device returns what the session last reported to compute on, and whether that is news since the last call.
func (r *relay) device() (d record.Device, fresh bool) {
	defer r.lock()()
	for _, e := range slices.Backward(r.events) {
		if e.Device != nil {
			fresh, r.judged = r.judged != e.Device, e.Device
			return *e.Device, fresh
		}
	}
	return d, false
}

// Warn writes a warning.
func (r *relay) Warn(w record.Warning) {
	defer r.lock()()
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

// sink is the sampler's. It warns once for each session, so its warnings hold for later attempts too.
type sink struct{ *relay }

// Warn writes a warning that holds for the rest of the session.
func (s sink) Warn(w record.Warning) {
	defer s.lock()()
	s.warnings = append(s.warnings, w)
	if s.rec != nil {
		s.rec.Warn(w)
	}
}

// Log opens a log of the session, among those of the attempt that opened it.
func (r *relay) Log(name string) io.WriteCloser {
	defer r.lock()()
	if r.rec == nil {
		return record.Discard
	}
	return r.rec.Log(name)
}

// probe passes what an engine reports to the record and the sampler.
type probe struct {
	*relay
	sampler *sample.Sampler
	gpus    *gpu.Monitor
}

// Attach samples a source, and the GPU memory of its process.
func (p probe) Attach(s sample.Source) (detach func()) {
	all := []func(){p.sampler.Attach(s)}
	for _, g := range p.gpus.Beside(s) {
		all = append(all, p.sampler.Attach(g))
	}
	return func() {
		for _, detach := range all {
			detach()
		}
	}
}

// less returns the cost since an earlier reading.
func less(now, before record.Cost) record.Cost {
	return record.Cost{Reads: now.Reads - before.Reads, ReadNS: now.ReadNS - before.ReadNS,
		ReadCPUNS: now.ReadCPUNS - before.ReadCPUNS, Waits: now.Waits - before.Waits,
		WaitNS: now.WaitNS - before.WaitNS}
}
