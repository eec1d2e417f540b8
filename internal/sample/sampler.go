package sample

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
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

// Sampler reads attached sources at their rate, all sources of one method in one pass, so that the totals of a tick belong
// together. Each method has a goroutine of its own: a slow read never delays a quick one.
type Sampler struct {
	sink   Sink
	ctx    context.Context
	cancel context.CancelFunc

	wg sync.WaitGroup

	mu      sync.Mutex // taken before a group's, never after
	groups  map[string]*group
	stopped bool // Attach comes too late

	warnings sync.Mutex
	warned   map[string]bool // methods that a warning was given for
}

// New makes a sampler that reads until Stop.
func New(ctx context.Context, sink Sink) *Sampler {
	ctx, cancel := context.WithCancel(ctx)
	return &Sampler{sink: sink, ctx: ctx, cancel: cancel, groups: map[string]*group{}, warned: map[string]bool{}}
}

// atMostOneIn bounds the share of a core that a method's ticks take: reading the mappings of large processes takes long, and is then
// done more rarely than the method's rate says. Phase edges are always read.
const atMostOneIn = 100

// group is the sources of one method, read in one pass.
type group struct {
	method string

	mu      sync.Mutex // held during a pass: a source is read by one goroutine at a time
	members []*member
	cost    record.Cost
}

type member struct {
	id  int
	src Source
}

// Attach reads a source from its method's next tick or the next Edge on, and not at all once the sampler has stopped. It is not read
// at once: an engine attaches its processes one after the other, and a total of the first alone would be no total.
func (s *Sampler) Attach(src Source) (detach func()) {
	d := src.Describe()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		closeSource(src)
		return func() {}
	}
	m := &member{id: s.sink.Source(d), src: src}
	g, ok := s.groups[d.Method]
	if !ok {
		g = &group{method: d.Method, members: []*member{m}}
		s.groups[d.Method] = g
		s.wg.Go(func() { s.loop(g, d.Every) })
	} else {
		g.add(m)
	}
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.drop(m)
	})
}

func (g *group) add(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = append(g.members, m)
}

func (g *group) drop(m *member) {
	for i, have := range g.members {
		if have == m {
			g.members = append(g.members[:i:i], g.members[i+1:]...)
			closeSource(m.src)
			return
		}
	}
}

func closeSource(src Source) {
	if c, ok := src.(io.Closer); ok {
		_ = c.Close() // a descriptor on /proc: nothing can be lost
	}
}

// Edge reads every source now: a phase begins or ends.
func (s *Sampler) Edge() {
	s.mu.Lock()
	groups := s.all()
	s.mu.Unlock()
	for _, g := range groups {
		s.pass(g)
	}
}

// Stop ends all reading, lets go of the sources, and tells what reading took.
func (s *Sampler) Stop() record.Cost {
	s.mu.Lock()
	s.stopped = true
	groups := s.all()
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	var cost record.Cost
	for _, g := range groups {
		g.mu.Lock()
		for _, m := range g.members {
			closeSource(m.src)
		}
		g.members = nil
		cost.Reads += g.cost.Reads
		cost.ReadNS += g.cost.ReadNS
		g.mu.Unlock()
	}
	return cost
}

func (s *Sampler) all() []*group {
	groups := make([]*group, 0, len(s.groups))
	for _, g := range s.groups {
		groups = append(groups, g)
	}
	return groups
}

func (s *Sampler) loop(g *group, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var rest time.Time // until when a dear pass is not repeated
	var before time.Duration
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			if now.Before(rest) {
				continue
			}
			spent := s.pass(g)
			// The shorter of two: one that was long because something else had the core says nothing of what reading takes.
			rest = time.Now().Add(min(spent, before) * atMostOneIn)
			before = spent
		}
	}
}

// pass reads the sources of a group and gives the time that reading took.
func (s *Sampler) pass(g *group) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	total := record.Total{Method: g.method, Sample: record.NewSample()}
	var spent time.Duration
	for _, m := range append([]*member(nil), g.members...) {
		reading := record.NewSample()
		err := m.src.Read(s.ctx, &reading)
		if err != nil {
			s.lose(g, m, err)
			continue
		}
		spent += reading.End.Sub(reading.Begin)
		s.sink.Sample(m.id, reading)
		add(&total, reading)
	}
	if total.Processes > 0 {
		s.sink.Total(total)
		g.cost.Reads += total.Processes
		g.cost.ReadNS += int64(spent)
	}
	return spent
}

// lose drops a source that can't be read any more, and says why unless its process has just ended.
func (s *Sampler) lose(g *group, m *member, err error) {
	if s.ctx.Err() != nil {
		return
	}
	g.drop(m)
	if errors.Is(err, ErrGone) {
		return
	}
	d := m.src.Describe()
	s.warnings.Lock()
	again := s.warned[d.Method]
	s.warned[d.Method] = true
	s.warnings.Unlock()
	if again {
		return
	}
	text := fmt.Sprintf("%s of process %d (%s) can't be read: %v", d.Method, d.PID, d.Role, err)
	if errors.Is(err, fs.ErrPermission) {
		text = fmt.Sprintf("%s of process %d (%s) may not be read by this user: its figures are absent", d.Method, d.PID, d.Role)
	}
	s.sink.Warn(record.Warning{Code: "unreadable-source", Text: text})
}

// add sums a reading into a total; a figure stays absent until a reading has it.
func add(t *record.Total, r record.Sample) {
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
