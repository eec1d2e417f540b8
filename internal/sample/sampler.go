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

	mu     sync.Mutex
	groups map[string]*group
	wg     sync.WaitGroup
	warned map[string]bool
	cost   record.Cost
}

// New makes a sampler that reads until Stop.
func New(ctx context.Context, sink Sink) *Sampler {
	ctx, cancel := context.WithCancel(ctx)
	return &Sampler{sink: sink, ctx: ctx, cancel: cancel, groups: map[string]*group{}, warned: map[string]bool{}}
}

// group is the sources of one method, read in one pass.
type group struct {
	method string

	mu      sync.Mutex // held during a pass: a source is read by one goroutine at a time
	members []*member
}

type member struct {
	id  int
	src Source
}

// Attach reads a source from now on: at the next tick of its method, which is now when it is the method's first.
func (s *Sampler) Attach(src Source) (detach func()) {
	d := src.Describe()
	m := &member{id: s.sink.Source(d), src: src}
	s.mu.Lock()
	g, ok := s.groups[d.Method]
	if !ok {
		g = &group{method: d.Method}
		s.groups[d.Method] = g
	}
	s.mu.Unlock()

	g.mu.Lock()
	g.members = append(g.members, m)
	g.mu.Unlock()
	if !ok {
		s.wg.Go(func() { s.loop(g, d.Every) })
	}
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.drop(m)
	})
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
	groups := make([]*group, 0, len(s.groups))
	for _, g := range s.groups {
		groups = append(groups, g)
	}
	s.mu.Unlock()
	for _, g := range groups {
		s.pass(g)
	}
}

// Stop ends all reading, lets go of the sources, and tells what reading took.
func (s *Sampler) Stop() record.Cost {
	s.cancel()
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		g.mu.Lock()
		for _, m := range g.members {
			closeSource(m.src)
		}
		g.members = nil
		g.mu.Unlock()
	}
	return s.cost
}

func (s *Sampler) loop(g *group, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	s.pass(g)
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
			s.pass(g)
		}
	}
}

func (s *Sampler) pass(g *group) {
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
		s.mu.Lock()
		s.cost.Reads += total.Processes
		s.cost.ReadNS += int64(spent)
		s.mu.Unlock()
	}
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
	s.mu.Lock()
	again := s.warned[d.Method]
	s.warned[d.Method] = true
	s.mu.Unlock()
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
