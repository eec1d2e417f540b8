package sample

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/record"
)

// Sink receives readings. Its methods are called concurrently.
type Sink interface {
	Source(record.Source) int
	Sample(source int, s record.Sample)
	Total(record.Total)
	Warn(record.Warning)
}

// Sampler reads attached sources at their intervals. All sources of a method are read in one pass, so that the parts of
// a total belong together. One thread reads what the kernel reports about processes. Every other method has its own
// goroutine, so a slow read never delays a fast one.
type Sampler struct {
	sink   Sink
	ctx    context.Context
	cancel context.CancelFunc

	wg     sync.WaitGroup
	paused atomic.Bool
	carry  carrier

	mu      sync.Mutex
	thread  thread
	groups  []*group // in their order at phase edges
	cost    record.Cost
	stopped bool // nothing can be attached any more

	warned sync.Map // codes and keys of warnings
}

// New returns a sampler that reads until Stop.
func New(ctx context.Context, sink Sink) *Sampler {
	ctx, cancel := context.WithCancel(ctx)
	return &Sampler{sink: sink, ctx: ctx, cancel: cancel, thread: thread{busy: make(chan struct{}, 1)},
		carry: carrier{machine: sharedMemory}}
}

// atMostOneIn limits the share of a core that the ticks of a method use. Reading PSS of large processes takes long, and
// is then done less often than its interval says. Phase edges are always read. An engine that computes on all cores in
// step is slowed on all of them by a delay on one.
const atMostOneIn = 200

// How long to wait for an answer, for example of a page that hangs. Phase edges wait less, because they delay the run.
const (
	tickPatience = 10 * time.Second
	edgePatience = 3 * time.Second
)

// group is the sources of one method, read in one pass.
type group struct {
	method string
	every  time.Duration
	waits  bool
	before func() // called before each tick; nil: nothing

	busy    chan struct{} // full during a pass
	reading record.Sample // of the current pass; reused, so that a tick does not allocate
	scanned []scanned     // by the current pass, if it is a scan; reused

	mu      sync.Mutex // not held during reads
	members []*member
}

// scanned is a reading that is recorded only with its total.
type scanned struct {
	id      int
	reading record.Sample
}

// member is a source in its group, whose lock guards the flags.
type member struct {
	id      int
	src     Source
	process *process // nil: none
	reading bool
	dropped bool
}

// Attach reads a source from its method's next tick or edge. It is not read at once, because a total of the first of
// several processes would be incomplete. At edges, methods are read in the order of their first attachment. After Stop,
// Attach does nothing.
func (s *Sampler) Attach(src Source) (detach func()) {
	d := src.Describe()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		closeSource(src)
		return func() {}
	}
	m := &member{id: s.sink.Source(d), src: src}
	g := s.group(d, nil)
	s.carry.join(d, m, g)
	if p, ok := src.(Pusher); ok {
		p.Pushes(func(r record.Sample) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if !m.dropped {
				s.sink.Sample(m.id, r)
			}
		})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = append(g.members, m)
	return func() { s.drop(g, m) }
}

// group returns the group of a method, which it makes and starts if there is none. It requires the lock.
func (s *Sampler) group(d record.Source, before func()) *group {
	if i := slices.IndexFunc(s.groups, func(g *group) bool { return g.method == d.Method }); i >= 0 {
		return s.groups[i]
	}
	g := &group{method: d.Method, every: d.Every, waits: d.Waits, before: before, busy: make(chan struct{}, 1)}
	s.groups = append(s.groups, g)
	switch {
	case d.Kernel && ofProcesses(d.Method):
		g.busy = s.thread.busy
		s.join(g)
	case d.Every > 0:
		s.wg.Go(func() { s.loop(g, d.Every) })
	}
	return g
}

// Tick calls a function before each tick of the method of d, which has no source yet. The function may attach sources
// that the tick then reads. Ticks come even while there is no source.
func (s *Sampler) Tick(d record.Source, before func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.group(d, before)
}

// Read reads, as a tick does, the methods that Tick names, and the PSS of processes that are new.
func (s *Sampler) Read() {
	for _, g := range s.all() {
		if g.before != nil {
			s.pass(s.ctx, g, onTick, "")
		}
	}
	s.mu.Lock()
	rollup := s.thread.expensive
	s.mu.Unlock()
	if unread, _ := s.carry.wants(); unread && rollup != nil {
		s.pass(s.ctx, rollup, onTick, "")
	}
}

// drop ends the sampling of a source without waiting; a read in progress is discarded.
func (s *Sampler) drop(g *group, m *member) {
	s.carry.leaves(m)
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.dropped {
		return
	}
	m.dropped = true
	g.members = slices.DeleteFunc(slices.Clone(g.members), func(have *member) bool { return have == m })
	if !m.reading {
		closeSource(m.src)
	}
}

// begin reports whether a source is still to be read, and end whether its reading still counts.
func (g *group) begin(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.reading = !m.dropped
	return m.reading
}

func (g *group) end(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.reading = false
	if m.dropped {
		closeSource(m.src)
	}
	return !m.dropped
}

// all returns the members. The slice is not modified: drop replaces it, and Attach appends.
func (g *group) all() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members
}

func closeSource(src Source) {
	if c, ok := src.(io.Closer); ok {
		_ = c.Close() // a file descriptor in /proc has no data to lose
	}
}

// all returns the groups. The slice is not modified: Attach appends.
func (s *Sampler) all() []*group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups
}

// Edge reads every source now, at the end of a phase, or before the first one if ended is empty, and resets peaks.
func (s *Sampler) Edge(ended record.Phase) {
	ctx, cancel := context.WithTimeout(s.ctx, edgePatience) // for all together
	defer cancel()
	for _, g := range s.all() {
		if !g.waits {
			s.pass(s.ctx, g, atEdge, ended)
		} else {
			s.pass(ctx, g, atEdge, ended)
		}
	}
	s.carry.phase(func(m *member, r record.Sample) { s.sink.Sample(m.id, r) })
}

// Mark reads the sources of a method now, at the edge of a request. It changes no peak.
func (s *Sampler) Mark(method string) {
	s.mu.Lock()
	i := slices.IndexFunc(s.groups, func(g *group) bool { return g.method == method })
	var g *group
	if i >= 0 {
		g = s.groups[i]
	}
	s.mu.Unlock()
	if g != nil {
		s.pass(s.ctx, g, marking, "")
	}
}

// Pause ends reading between phase edges until Resume, so that an idle session costs nothing. It waits for a pass in
// progress, so that readings and cost agree, unless its sources wait for answers and may hang.
func (s *Sampler) Pause() {
	s.paused.Store(true)
	for _, g := range s.all() {
		if g.waits {
			continue
		}
		select {
		case g.busy <- struct{}{}:
			<-g.busy
		case <-s.ctx.Done():
		}
	}
}

// Resume continues reading.
func (s *Sampler) Resume() {
	s.paused.Store(false)
	s.thread.sleeper.wake()
}

// Stop ends all reading, closes the sources, and returns the cost of reading.
func (s *Sampler) Stop() record.Cost {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	for _, g := range s.all() {
		for _, m := range g.all() {
			s.drop(g, m)
		}
	}
	return s.Cost()
}

// Cost returns the cost of reading so far.
func (s *Sampler) Cost() record.Cost {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cost
}

func (s *Sampler) loop(g *group, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var rest time.Time                                   // no pass until then
	before := time.Duration(math.MaxInt64 / atMostOneIn) // the first pass is judged alone
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			if now.Before(rest) || s.paused.Load() {
				continue
			}
			ctx, cancel := context.WithTimeout(s.ctx, tickPatience)
			spent, _ := s.pass(ctx, g, onTick, "")
			cancel()
			if g.waits {
				continue // waiting is not work; ticks that came meanwhile are dropped
			}
			// The shorter of two passes: a pass may be long because something else used the core.
			rest = time.Now().Add(min(spent, before) * atMostOneIn)
			before = spent
		}
	}
}

// kind is why a pass happens.
type kind int

const (
	onTick kind = iota
	atEdge
	scanning // records only what raises the highest total of the phase
	marking  // records a reading that ends no phase
)

// pass reads the sources of a group. It returns the time spent reading, and the CPU time of all, which is only known of
// sources that do not wait. ended is the phase that an edge ends.
func (s *Sampler) pass(ctx context.Context, g *group, why kind, ended record.Phase) (spent, cpu time.Duration) {
	select {
	case g.busy <- struct{}{}:
	case <-ctx.Done(): // the previous pass hangs
		if s.ctx.Err() == nil {
			s.warn(unanswered, g.method, g.method+late)
		}
		return 0, 0
	}
	defer func() { <-g.busy }()
	if (why == onTick || why == scanning) && s.paused.Load() {
		return 0, 0 // paused since the tick
	}
	if why == onTick && g.before != nil {
		g.before()
	}
	total := record.Total{Method: g.method, Sample: record.NewSample()}
	if ofProcesses(g.method) {
		s.carry.begin()
	}
	if !g.waits {
		runtime.LockOSThread() // to measure its CPU time
		defer runtime.UnlockOSThread()
	}
	g.scanned = g.scanned[:0]
	read, before := 0, threadCPU()
	for _, m := range g.all() {
		if !g.begin(m) {
			continue
		}
		reading := &g.reading
		*reading = record.NewSample()
		begin := time.Now()
		err := s.read(ctx, g, m, reading)
		switch {
		case !g.end(m):
			continue
		case err == nil:
			spent += reading.End.Sub(reading.Begin)
			if reading.OfProcess() {
				add(&total, reading)
			}
		case why != scanning: // else the next tick reports it
			spent += time.Since(begin)
			s.lose(ctx, g, m, err)
		}
		if err != nil {
			continue
		}
		if why == scanning {
			g.scanned = append(g.scanned, scanned{m.id, *reading})
			continue
		}
		read++
		if why == atEdge {
			reading.Edge = ended
			reading.Values = append(reading.Values, reading.Kinds.Values()...)
		}
		s.sink.Sample(m.id, *reading)
		if p, ok := m.src.(Peaker); ok && why == atEdge {
			s.resetPeak(ctx, g, m, p)
		}
	}
	cpu = threadCPU() - before
	s.spend(g, read, spent, cpu)
	if s.sum(g, why, &total) {
		for _, r := range g.scanned {
			s.sink.Sample(r.id, r.reading)
		}
	}
	return spent, cpu
}

func (s *Sampler) resetPeak(ctx context.Context, g *group, m *member, p Peaker) {
	err := p.ResetPeak(ctx)
	if err == nil && m.process != nil {
		s.carry.resets(m.process)
	}
	if err != nil && s.ctx.Err() == nil && !errors.Is(err, ErrGone) {
		s.warn("peak-not-reset", g.method,
			fmt.Sprintf("can't reset the peak of %s, so phases have no peaks of their own (%v)", g.method, err))
	}
}

func (s *Sampler) spend(g *group, read int, spent, cpu time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.waits {
		s.cost.Waits += read
		s.cost.WaitNS += int64(spent)
	} else {
		s.cost.Reads += read
		s.cost.ReadNS += int64(spent)
		s.cost.ReadCPUNS += int64(min(cpu, spent)) // the rest of a pass is not reading
	}
}

const (
	unanswered = "unanswered-source"
	late       = " did not answer in time at least once; some readings are missing"
)

// lose drops a source that can't be read, and warns once for each method and role unless its process has ended. A
// source that did not answer in time is kept.
func (s *Sampler) lose(ctx context.Context, g *group, m *member, err error) {
	if s.ctx.Err() != nil {
		return
	}
	d := m.src.Describe()
	who := "of the " + d.Role
	if d.PID != 0 {
		who = fmt.Sprintf("of process %d (%s)", d.PID, d.Role)
	}
	if ctx.Err() != nil && !errors.Is(err, ErrGone) {
		s.warn(unanswered, g.method, d.Method+" "+who+late)
		return
	}
	s.drop(g, m)
	if errors.Is(err, ErrGone) {
		return
	}
	why := fmt.Sprintf("can't read: %v", err)
	if errors.Is(err, fs.ErrPermission) {
		why = "no permission to read; its figures are missing"
	}
	s.warn("unreadable-source", g.method+d.Role, g.method+" "+who+": "+why)
}

// warn warns once for each code and key.
func (s *Sampler) warn(code, key, text string) {
	if _, said := s.warned.LoadOrStore(code+" "+key, true); !said {
		s.sink.Warn(record.Warning{Code: code, Text: text})
	}
}

// add adds a reading to a total; a figure stays absent until a reading has it.
func add(t *record.Total, r *record.Sample) {
	if t.Processes == 0 {
		t.Begin = r.Begin
	}
	t.End = r.End
	t.Processes++
	for _, f := range []struct {
		sum *int64
		v   int64
	}{{&t.RSS, r.RSS}, {&t.VMS, r.VMS}, {&t.PSS, r.PSS}, {&t.USS, r.USS}, {&t.Swap, r.Swap}} {
		switch {
		case f.v == record.Absent:
		case *f.sum == record.Absent:
			*f.sum = f.v
		default:
			*f.sum += f.v
		}
	}
}
