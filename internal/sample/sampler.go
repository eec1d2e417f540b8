package sample

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/record"
)

// Sink takes what is read. Its methods are called from several goroutines.
type Sink interface {
	Source(record.Source) int
	Sample(source int, s record.Sample)
	Total(record.Total)
	Warn(record.Warning)
}

// Sampler reads attached sources at their rate, all sources of one method in one pass, so that the totals of a tick
// belong together. One thread reads what the kernel tells of processes. Each other method has a goroutine of its own: a
// slow read never delays a quick one.
type Sampler struct {
	sink   Sink
	ctx    context.Context
	cancel context.CancelFunc

	wg     sync.WaitGroup
	paused atomic.Bool
	carry  carrier

	mu      sync.Mutex
	thread  thread
	groups  []*group // in the order in which they are read at phase edges
	stopped bool     // Attach comes too late

	warnings sync.Mutex
	warned   map[string]bool // what was warned of, and whom of
}

// New makes a sampler that reads until Stop.
func New(ctx context.Context, sink Sink) *Sampler {
	ctx, cancel := context.WithCancel(ctx)
	return &Sampler{sink: sink, ctx: ctx, cancel: cancel, warned: map[string]bool{},
		thread: thread{busy: make(chan struct{}, 1)},
		carry:  carrier{machine: sharedMemory}}
}

// atMostOneIn bounds the share of a core that a method's ticks take: reading the mappings of large processes takes
// long, and is then done more rarely than the method's rate says. Phase edges are always read. An engine that computes
// on all cores in step loses with each of them what one of them loses.
const atMostOneIn = 200

// A read that gets no answer, from a page that hangs, is given up. Phase edges wait for less: the run must go on.
const (
	tickPatience = 10 * time.Second
	edgePatience = 3 * time.Second
)

// group is the sources of one method, read in one pass.
type group struct {
	method string
	every  time.Duration
	waits  bool

	busy    chan struct{} // full during a pass: a source is read by one goroutine at a time
	reading record.Sample // of the pass that goes on: a tick allocates nothing

	mu      sync.Mutex // never held while something is read
	members []*member
	cost    record.Cost // of the passes so far
}

// member is a source in its group; the group's lock guards the flags.
type member struct {
	id      int
	src     Source
	process *process // nil: it is none's
	pushes  *pushes  // nil: it does not push
	reading bool
	dropped bool
}

// pushes lets a source's readings through until it is detached.
type pushes struct {
	mu    sync.Mutex
	ended bool
}

func (p *pushes) end() {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = true
	}
}

// Attach reads a source from its method's next tick or the next Edge on, and not at all once the sampler has stopped.
// It is not read at once: an engine attaches its processes one after the other, and a total of the first alone would be
// no total. At phase edges methods are read in the order in which they were first attached.
func (s *Sampler) Attach(src Source) (detach func()) {
	d := src.Describe()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		closeSource(src)
		return func() {}
	}
	m := &member{id: s.sink.Source(d), src: src, process: s.carry.process(d)}
	if p, ok := src.(Pusher); ok {
		m.pushes = &pushes{}
		p.Pushes(func(r record.Sample) {
			m.pushes.mu.Lock()
			defer m.pushes.mu.Unlock()
			if !m.pushes.ended {
				s.sink.Sample(m.id, r)
			}
		})
	}
	i := slices.IndexFunc(s.groups, func(g *group) bool { return g.method == d.Method })
	if i < 0 {
		i = len(s.groups)
		g := &group{method: d.Method, every: d.Every, waits: d.Waits, busy: make(chan struct{}, 1)}
		s.groups = append(s.groups, g)
		switch {
		case d.Kernel && ofProcesses(d.Method):
			g.busy = s.thread.busy
			s.join(g)
		case d.Every > 0:
			s.wg.Go(func() { s.loop(g, d.Every) })
		}
	}
	g := s.groups[i]
	if m.process != nil {
		s.carry.joins(m.process, m, g)
	}
	g.add(m)
	return func() { s.drop(g, m) }
}

func (g *group) add(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = append(g.members, m)
}

func (s *Sampler) drop(g *group, m *member) {
	s.carry.leaves(m)
	g.drop(m)
}

// drop ends the sampling of a source. It waits for no read: one that is going on is for nothing.
func (g *group) drop(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.dropped {
		return
	}
	m.dropped = true
	m.pushes.end()
	g.members = slices.DeleteFunc(slices.Clone(g.members), func(have *member) bool { return have == m })
	if !m.reading {
		closeSource(m.src)
	}
}

// begin tells whether a source is still to be read, and end whether what was read still counts.
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

// all gives the members. Nobody changes what it gives: drop makes another slice, add writes behind its end.
func (g *group) all() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members
}

func closeSource(src Source) {
	if c, ok := src.(io.Closer); ok {
		_ = c.Close() // a descriptor on /proc: nothing can be lost
	}
}

// Edge reads every source now: a phase has ended, or, where it is empty, the first one is about to begin. Peaks begin
// anew.
func (s *Sampler) Edge(ended record.Phase) {
	s.mu.Lock()
	groups := slices.Clone(s.groups)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, edgePatience) // for all together: what hangs for one hangs for the next
	defer cancel()
	for _, g := range groups {
		if !g.waits {
			s.pass(s.ctx, g, &ended)
		} else {
			s.pass(ctx, g, &ended)
		}
	}
	s.carry.phase(func(m *member, r record.Sample) { s.sink.Sample(m.id, r) })
}

// Pause ends reading between phase edges until Resume: what is idle must not cost. A pass that goes on is waited for,
// so that what has been told and what it took agree; not that of a source that waits, which may hang.
func (s *Sampler) Pause() {
	s.paused.Store(true)
	s.mu.Lock()
	groups := slices.Clone(s.groups)
	s.mu.Unlock()
	for _, g := range groups {
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

// Resume goes on reading.
func (s *Sampler) Resume() {
	s.paused.Store(false)
	s.thread.sleeper.wake()
}

// Stop ends all reading, lets go of the sources, and tells what reading took.
func (s *Sampler) Stop() record.Cost {
	s.mu.Lock()
	s.stopped = true
	groups := slices.Clone(s.groups)
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	for _, g := range groups {
		for _, m := range g.all() {
			s.drop(g, m)
		}
	}
	return s.Cost()
}

// Cost tells what reading has taken so far.
func (s *Sampler) Cost() record.Cost {
	s.mu.Lock()
	groups := slices.Clone(s.groups)
	s.mu.Unlock()
	var cost record.Cost
	for _, g := range groups {
		g.mu.Lock()
		cost.Reads += g.cost.Reads
		cost.ReadNS += g.cost.ReadNS
		cost.Waits += g.cost.Waits
		cost.WaitNS += g.cost.WaitNS
		g.mu.Unlock()
	}
	return cost
}

func (s *Sampler) loop(g *group, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var rest time.Time                                   // until when an expensive pass is not repeated
	before := time.Duration(math.MaxInt64 / atMostOneIn) // the first pass stands for itself
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			if now.Before(rest) || s.paused.Load() {
				continue
			}
			ctx, cancel := context.WithTimeout(s.ctx, tickPatience)
			spent := s.pass(ctx, g, nil)
			cancel()
			if g.waits {
				continue // what it waited for was not work; a tick that came meanwhile is dropped
			}
			// The shorter of two: one that was long because something else had the core says nothing of what reading
			// takes.
			rest = time.Now().Add(min(spent, before) * atMostOneIn)
			before = spent
		}
	}
}

// pass reads the sources of a group and gives the time that reading took. edge is nil between phase edges.
func (s *Sampler) pass(ctx context.Context, g *group, edge *record.Phase) time.Duration {
	select {
	case g.busy <- struct{}{}:
	case <-ctx.Done(): // the last pass hangs
		if s.ctx.Err() == nil {
			s.warn(unanswered+g.method, unanswered, g.method+late)
		}
		return 0
	}
	defer func() { <-g.busy }()
	if edge == nil && s.paused.Load() {
		return 0 // since the tick
	}
	total := record.Total{Method: g.method, Sample: record.NewSample()}
	if ofProcesses(g.method) {
		s.carry.begin()
	}
	var spent time.Duration
	read := 0
	var lost []loss
	for _, m := range g.all() {
		if !g.begin(m) {
			continue
		}
		reading := &g.reading
		*reading = record.NewSample()
		begin := time.Now()
		err := s.read(ctx, g, m, reading)
		if !g.end(m) {
			continue
		}
		if err != nil {
			spent += time.Since(begin)
			lost = s.lose(ctx, g, m, err, lost)
			continue
		}
		spent += reading.End.Sub(reading.Begin)
		read++
		if edge != nil {
			reading.Edge = *edge
			reading.Values = append(reading.Values, reading.Kinds.Values()...)
		}
		s.sink.Sample(m.id, *reading)
		if reading.OfProcess() {
			add(&total, reading)
		}
		if p, ok := m.src.(Peaker); ok && edge != nil {
			err := p.ResetPeak(ctx)
			if err == nil && m.process != nil {
				s.carry.resets(m.process)
			}
			if err != nil && s.ctx.Err() == nil && !errors.Is(err, ErrGone) {
				s.warn("peak-not-reset"+g.method, "peak-not-reset",
					fmt.Sprintf("the peak that %s reads can't be reset: phases have no peak of "+
						"their own (%v)", g.method, err))
			}
		}
	}
	s.sum(g, &total)
	s.tell(g, lost)
	g.spend(read, spent)
	return spent
}

func (g *group) spend(read int, spent time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waits {
		g.cost.Waits += read
		g.cost.WaitNS += int64(spent)
	} else {
		g.cost.Reads += read
		g.cost.ReadNS += int64(spent)
	}
}

const (
	unanswered = "unanswered-source"
	late       = " did not answer in time, at least once: its figures are absent there"
)

// loss is a source that can't be read any more.
type loss struct{ role, who, why string }

// lose drops a source that can't be read any more, and adds it to what is lost unless its process has just ended. One
// that did not answer in time is read again.
func (s *Sampler) lose(ctx context.Context, g *group, m *member, err error, lost []loss) []loss {
	if s.ctx.Err() != nil {
		return lost
	}
	d := m.src.Describe()
	who := "of the " + d.Role
	if d.PID != 0 {
		who = fmt.Sprintf("of process %d (%s)", d.PID, d.Role)
	}
	if ctx.Err() != nil && !errors.Is(err, ErrGone) {
		s.warn(unanswered+g.method, unanswered, d.Method+" "+who+late)
		return lost
	}
	s.drop(g, m)
	switch {
	case errors.Is(err, ErrGone):
		return lost
	case errors.Is(err, fs.ErrPermission):
		return append(lost, loss{d.Role, who, " may not be read by this user: its figures are absent"})
	}
	return append(lost, loss{d.Role, who, fmt.Sprintf(" can't be read: %v", err)})
}

// tell says what was lost in a pass, once a method and role: what ends several sources at once is one thing, and a role
// that is lost later another.
func (s *Sampler) tell(g *group, lost []loss) {
	const code = "unreadable-source"
	for len(lost) > 0 {
		first := lost[0]
		var who, keys []string
		var rest []loss
		for _, l := range lost {
			switch key := code + g.method + l.role; {
			case slices.Contains(keys, key): // of several processes of a role the first is named
			case l.why == first.why:
				who, keys = append(who, l.who), append(keys, key)
			default:
				rest = append(rest, l)
			}
		}
		lost = rest
		who = s.unsaid(who, keys)
		if len(who) > 0 {
			s.sink.Warn(record.Warning{Code: code, Text: g.method + " " + strings.Join(who, ", ") + first.why})
		}
	}
}

// unsaid keeps those that were not warned of under their keys until now.
func (s *Sampler) unsaid(who, keys []string) []string {
	s.warnings.Lock()
	defer s.warnings.Unlock()
	var out []string
	for i, key := range keys {
		if !s.warned[key] {
			out = append(out, who[i])
		}
		s.warned[key] = true
	}
	return out
}

// warn says a thing once a key.
func (s *Sampler) warn(key, code, text string) {
	if len(s.unsaid([]string{text}, []string{key})) > 0 {
		s.sink.Warn(record.Warning{Code: code, Text: text})
	}
}

// add sums a reading into a total; a figure stays absent until a reading has it.
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
