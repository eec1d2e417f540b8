package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/bench/run/steady"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/pagecache"
	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/words"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

const idleFor = 300 * time.Millisecond

// attempt is a repetition or a warm-up: a launch from Open to Close, or further requests in the session of an earlier
// attempt.
type attempt struct {
	*runner
	setup    *current
	cell     *series
	turn     turn
	next     []turn // turns after this one
	rec      *record.Recording
	say      func(Event)
	live     *live             // session left open by an earlier attempt, or nil
	keep     bool              // the next attempt continues in the session
	output   *score.Output     // what it generated in the measure phase
	measured []*record.Request // answered requests
	figure   float64           // the figure that --until-ci waits for
	stop     *record.Stop      // if that ends the cell's repetitions; else nil
	begun    time.Time
	needs    time.Duration // the time of the launch at the speed of its last tokens; 0: unknown
}

// run carries the attempt out and commits it to the record, whatever happens. It returns the session for the next
// repetition, or nil.
func (a *attempt) run(parent context.Context) (*live, error) {
	ctx, cancel := a.limited(parent)
	defer cancel()
	a.begun = time.Now()
	opens := a.live == nil
	if opens {
		of := ctx
		if a.turn.session() != nil {
			of = parent // it may outlive the attempt
		}
		a.memory.Store(0)
		r := &relay{memory: &a.memory}
		a.live = &live{relay: r, sampler: sample.New(of, sink{r}), opener: a.rec.ID(), of: a.turn.session()}
	}
	l, kept := a.live, false
	defer func() {
		if !kept {
			_ = l.close() // also on a panic: end what we started
		}
	}()
	cpu, before, stolen := machine.SelfCPU(), l.sampler.Cost(), machine.Stolen()
	l.relay.begin(a.rec)
	l.sampler.Resume()
	err := a.phases(ctx, opens)
	if err != nil && ctx.Err() != nil {
		cause := context.Cause(ctx)
		if t, ok := errors.AsType[launchTimeout](cause); ok {
			t.needs = a.needs
			cause = t
		}
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	continues := a.keep && err == nil
	if continues {
		l.sampler.Pause()
	} else {
		l.sampler.Stop()
		err = errors.Join(err, l.close())
	}
	cost := less(l.sampler.Cost(), before)
	l.relay.end()
	cost.SelfCPUNS = int64(machine.SelfCPU() - cpu)
	if now := machine.Stolen(); stolen != nil && now != nil {
		a.rec.Stolen(max(0, *now-*stolen))
	}
	status, class := outcome(parent, err)
	a.rec.End(status, class, err, cost)
	a.say(Event{Kind: Ended, Text: string(status), Err: err})
	if !continues {
		return nil, err
	}
	kept = true
	return l, nil
}

// limited returns a context that ends with the attempt's time: that of a launch, or what is left of the cell's.
func (a *attempt) limited(parent context.Context) (context.Context, context.CancelFunc) {
	limit := time.Duration(a.setup.Plan.Timeout)
	if of := time.Duration(a.setup.Plan.CellTimeout); of > 0 && of-a.cell.spent < limit {
		over := fmt.Errorf("cell exceeded its time limit of %s: %w", of, context.DeadlineExceeded)
		return context.WithTimeoutCause(parent, of-a.cell.spent, over)
	}
	return context.WithTimeoutCause(parent, limit, launchTimeout{limit: limit})
}

// launchTimeout is the cause of an attempt that exceeded the time limit of a launch. It is no fault.Error: that would
// end the cell, and the next launch may be faster.
type launchTimeout struct{ limit, needs time.Duration }

func (t launchTimeout) Error() string {
	if t.needs > t.limit {
		return fmt.Sprintf("launch exceeded its time limit of %s; start a new run with --timeout %s, enough at the speed of this launch",
			t.limit, words.Timeout(t.needs*5/4))
	}
	return fmt.Sprintf("launch exceeded its time limit of %s; set a higher --timeout in a new run, or repeat the failed "+
		"launch with --resume DIR --retry-failed", t.limit)
}

func (launchTimeout) Unwrap() error { return context.DeadlineExceeded }

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
	rowsOf   int               // events that rows has read

	memory *atomic.Int64 // last total RSS; nil: nobody asks
	read   steady.Totals // by method, while the baseline settles; else nil
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

// less returns the cost since an earlier reading.
func less(now, before record.Cost) record.Cost {
	return record.Cost{Reads: now.Reads - before.Reads, ReadNS: now.ReadNS - before.ReadNS,
		ReadCPUNS: now.ReadCPUNS - before.ReadCPUNS, Waits: now.Waits - before.Waits,
		WaitNS: now.WaitNS - before.WaitNS}
}

// end detaches the recording.
func (r *relay) end() {
	defer r.lock()()
	r.rec = nil
}

// phases runs the phases of the attempt.
func (a *attempt) phases(ctx context.Context, opens bool) error {
	if opens {
		if err := a.open(ctx); err != nil {
			return err
		}
	} else {
		a.markProfiled()
		a.live.sampler.Edge("") // readings between attempts belong to neither
	}
	if err := a.phase(ctx, record.Measure, func() error { return a.measure(ctx) }); err != nil {
		return err
	}
	a.look()
	if a.keep = continues(a.turn, a.next, a.stop != nil); a.keep && a.cell.Shared {
		return nil
	}
	if err := a.phase(ctx, record.Idle, func() error { return pause(ctx, idleFor) }); err != nil || a.keep {
		return err
	}
	a.cell.ran = true
	if a.turn.warmup {
		if usable, err := a.checkScores(ctx); err != nil || !usable {
			return err
		}
	}
	return a.phase(ctx, record.Unload, func() error { return a.live.session.Unload(ctx) })
}

// open runs the phases up to a loaded and warm model.
func (a *attempt) open(ctx context.Context) (err error) {
	e, l := a.cell.engine, a.live
	a.fromDisk(ctx)
	model := a.setup.Of(e)
	model.Context = a.setup.Plan.Context
	l.relay.model = model
	if l.session, err = engine.OpenFor(ctx, e, model, probe{l.relay, l.sampler, a.gpus}); err == nil {
		err = a.asked()
	}
	if err != nil {
		return err
	}
	for _, src := range a.gpus.Sources() {
		l.sampler.Attach(src)
	}
	a.markProfiled()
	if e.Caps().Resident {
		l.sampler.Edge("")
		if err := a.phase(ctx, record.Baseline, func() error { return a.settle(ctx) }); err != nil {
			return err
		}
	}
	err = a.phase(ctx, record.Load, func() error { return l.session.Load(ctx, model) })
	if pids := l.relay.pids(); len(pids) > 0 {
		if words := machine.Beside(append(pids, child.Tagged(os.Getpid())...), model.Files()); words != "" {
			l.relay.Warn(record.Warnf(record.ProgramShared, "%s: PSS splits a file's memory between all programs "+
				"that use it, so the engine's peak reads low", words))
		}
	}
	l.relay.serve()
	if err != nil {
		return err
	}
	if info, reported := l.relay.engine(); reported {
		if err := a.past.sameEngine(a.runner, a.setup, a.cell.Engine, info); err != nil {
			return err
		}
	}
	return a.phase(ctx, record.Warmup, func() error {
		r := engine.Request{Prompt: a.cell.Prompt, MaxTokens: a.cell.MaxTokens}
		if a.cell.Traffic != nil {
			s := traffic.New(*a.cell.Traffic)
			first := s.Requests()[0]
			// an index of its own: the server must not have the prompt of the first measured request in its cache
			first.Index = a.cell.Traffic.Requests
			r, _ = a.ask(first)
		}
		return a.generate(ctx, record.Warmup, r.Prompt, min(a.setup.Plan.Warmup.Tokens, r.MaxTokens))
	})
}

// fromDisk evicts the model's files from the page cache, or reads them into it, as the cell requests. It warns if that
// fails.
func (a *attempt) fromDisk(ctx context.Context) {
	start := a.cell.Start
	if start == "" {
		return
	}
	paths := a.setup.Of(a.cell.engine).Files()
	if reader, ok := a.cell.engine.(engine.Reader); ok {
		paths = reader.Files(a.setup.Of(a.cell.engine))
	}
	files, err := pagecache.Files(paths)
	for ; err == nil && len(files) > 0; files = files[1:] {
		if start == record.ColdStart {
			err = pagecache.Evict(files[0])
		} else {
			err = pagecache.Load(ctx, files[0])
		}
	}
	if err != nil {
		a.rec.Warn(record.Warnf("not-"+start, "no %s start: %v", start, err))
	}
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

// Event writes an event. What the engine, its device and its clocks are, and what it got of what was asked for, holds
// for the session.
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
	if e.Engine != nil || e.Device != nil || e.Clock != nil || e.Ran != nil || e.Store != nil {
		r.events = append(r.events, e)
	}
	if r.rec != nil {
		r.rec.Event(e)
	}
}

// Span writes a load stage.
func (r *relay) Span(s record.Span) {
	defer r.lock()()
	if r.rec != nil {
		r.rec.Span(s)
	}
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

// Log opens a log of the session, among those of the attempt that opened it.
func (r *relay) Log(name string) io.WriteCloser {
	defer r.lock()()
	if r.rec == nil {
		return record.Discard
	}
	return r.rec.Log(name)
}

// phase runs one phase. The reading at its end lies outside the phase if its duration is a figure, and inside if the
// phase only waits for that reading.
func (a *attempt) phase(ctx context.Context, p record.Phase, do func() error) error {
	a.say(Event{Kind: Entered, Phase: p})
	defer a.profile(ctx, p)()
	a.live.sampler.Dense(p != record.Warmup && p != record.Measure)
	begin := time.Now()
	err := do()
	waits := p == record.Baseline || p == record.Idle
	if waits {
		a.live.sampler.Edge(p)
	}
	a.rec.Phase(p, begin, time.Now())
	if !waits {
		a.live.sampler.Edge(p)
	}
	if err == nil {
		err = a.asked()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	return nil
}

// asked judges what the engine reports of its device and of what else the plan asks for. It is called after each
// phase, because some engines know that only once they have loaded or generated.
func (a *attempt) asked() error {
	allowed := a.setup.Plan.AllowFallback
	if d, fresh := a.live.relay.device(); fresh {
		w, err := engine.Asked(d, allowed)
		if w != nil {
			a.live.relay.Warn(*w)
		}
		if err != nil {
			return err
		}
	}
	warnings, err := engine.AskedAlso(a.live.relay.rows(), allowed)
	for _, w := range warnings {
		sink{a.live.relay}.Warn(w)
	}
	return err
}

// rows returns what the session reported since the last call of what it asked for and got.
func (r *relay) rows() (out []ran.Row) {
	defer r.lock()()
	for _, e := range r.events[r.rowsOf:] {
		out = append(out, e.Ran...)
	}
	r.rowsOf = len(r.events)
	return out
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

func (r *relay) serve() {
	defer r.lock()()
	r.serving = true
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

// look decides for --until-ci whether the cell needs more repetitions after this one.
func (a *attempt) look() {
	if a.cell.enough == nil || a.turn.warmup {
		return
	}
	a.figure = a.cell.enough.Of(a.measured)
	a.stop = a.cell.enough.Decide(a.figure, a.turn.repetition)
}

// continues reports whether the next attempt continues in a turn's session. stopped says that its cell gets no more.
func continues(t turn, rest []turn, stopped bool) bool {
	if t.session() == nil {
		return false
	}
	for _, next := range rest {
		if !next.over() && !(stopped && next.series == t.series) {
			return next.session() == t.session()
		}
	}
	return false
}
