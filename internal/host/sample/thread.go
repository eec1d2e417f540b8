package sample

import (
	"context"
	"time"

	"llmparity/internal/record"
)

// denseEvery is the interval of reading sizes while nothing is timed: it sees a peak of 80 ms three times.
const denseEvery = 25 * time.Millisecond

// While nothing is timed, PSS may be read whenever the total exceeds the highest so far: first for a total of burst,
// then for 1/denseShare of the time.
const (
	burst      = 60 * time.Millisecond
	denseShare = 100
)

// ofProcesses reports whether totals of a method are carried forward.
func ofProcesses(method string) bool {
	return method == record.MethodStatm || method == record.MethodSmapsRollup
}

// mode says what is read beyond the intervals.
type mode int

const (
	timed     mode = iota // nothing
	dense                 // sizes between ticks, and PSS in bursts
	attentive             // PSS, after a process has ended, too
)

// thread is a goroutine that sleeps in the kernel and reads what is due about processes. The sampler's lock guards it.
type thread struct {
	sleeper          sleeper
	cheap, expensive *group        // nil: no source yet
	busy             chan struct{} // full during a pass of either

	mode mode
	from time.Time     // start of the mode; if attentive, of the last reading of PSS
	cost time.Duration // of reading PSS since then
}

// Dense allows reading the sizes of processes more often than their interval, and PSS whenever the total exceeds the
// highest so far. It is for phases in which no token is timed.
func (s *Sampler) Dense(on bool) {
	if on {
		s.set(dense)
	} else {
		s.set(timed)
	}
}

// Attentive allows reading PSS whenever the total exceeds the highest so far or a process has ended, for at most
// 1/denseShare of the time. It is for processes that nothing else is known of.
func (s *Sampler) Attentive() { s.set(attentive) }

func (s *Sampler) set(m mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thread.mode != m {
		s.thread.mode, s.thread.from, s.thread.cost = m, time.Now(), 0
		s.thread.sleeper.wake()
	}
}

// join hands a group of processes to the thread. It requires the sampler's lock.
func (s *Sampler) join(g *group) {
	first := s.thread.cheap == nil && s.thread.expensive == nil
	if g.method == record.MethodStatm {
		s.thread.cheap = g
	} else {
		s.thread.expensive = g
	}
	if !first {
		s.thread.sleeper.wake()
		return
	}
	s.thread.sleeper.open()
	stop := context.AfterFunc(s.ctx, s.thread.sleeper.wake)
	s.wg.Go(func() {
		defer s.thread.sleeper.close()
		defer stop()
		s.readProcesses()
	})
}

// readProcesses is the body of the thread.
func (s *Sampler) readProcesses() {
	var tick, scan, expensive pace
	for s.ctx.Err() == nil {
		s.mu.Lock()
		cheap, rollup, mode := s.thread.cheap, s.thread.expensive, s.thread.mode
		s.mu.Unlock()
		now := time.Now()
		tick.set(now, every(cheap))
		expensive.set(now, every(rollup))
		if mode == dense {
			scan.set(now, min(denseEvery, every(cheap)))
		} else {
			scan.set(now, 0)
		}
		if s.paused.Load() {
			s.thread.sleeper.sleep(time.Hour) // Resume wakes it
			continue
		}
		if wait := earliest(now, &tick, &scan, &expensive); wait > 0 {
			s.thread.sleeper.sleep(wait)
			continue
		}
		if tick.due(now) {
			s.pass(s.ctx, cheap, onTick, "")
			tick.next(now)
			scan.next(now)
		} else if scan.due(now) {
			s.pass(s.ctx, cheap, scanning, "")
			scan.next(now)
		}
		if rollup == nil || !s.wantsPSS(expensive.due(now)) {
			continue
		}
		begin := time.Now()
		_, cpu := s.pass(s.ctx, rollup, onTick, "")
		expensive.rest(time.Now(), cpu)
		s.spent(cpu, time.Since(begin))
	}
}

func every(g *group) time.Duration {
	if g == nil {
		return 0
	}
	return g.every
}

// wantsPSS reports whether to read PSS: when it is due, when a process is new, or as the mode allows.
func (s *Sampler) wantsPSS(due bool) bool {
	unread, surprising := s.carry.wants()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.thread
	switch {
	case due:
		return true
	case t.mode == attentive:
		return (unread || s.carry.stale()) && time.Since(t.from) > t.cost*denseShare
	case t.mode == dense && surprising && t.cost < burst+time.Since(t.from)/denseShare:
		return true
	}
	return unread
}

// spent takes the cost of reading PSS. If attentive, waiting for a processor counts: then the machine is busy.
func (s *Sampler) spent(cpu, elapsed time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thread.mode == attentive {
		s.thread.from, s.thread.cost = time.Now(), elapsed
		return
	}
	s.thread.cost += cpu
}

// pace says when something is due. Its zero value is never due.
type pace struct {
	every time.Duration
	at    time.Time
}

// set sets the interval, which starts now; zero ends it.
func (p *pace) set(now time.Time, every time.Duration) {
	if p.every != every {
		p.every, p.at = every, now.Add(every)
	}
}

func (p *pace) due(now time.Time) bool { return p.every > 0 && !now.Before(p.at) }

// next schedules the next time and skips missed ones.
func (p *pace) next(now time.Time) {
	if p.at = p.at.Add(p.every); !p.at.After(now) {
		p.at = now.Add(p.every)
	}
}

// rest is next for a long pass: it keeps to its share of a core.
func (p *pace) rest(now time.Time, spent time.Duration) {
	p.next(now)
	if at := now.Add(spent * atMostOneIn); at.After(p.at) {
		p.at = at
	}
}

// earliest returns the time until one of them is due.
func earliest(now time.Time, all ...*pace) time.Duration {
	wait := time.Hour
	for _, p := range all {
		if p.every > 0 {
			wait = min(wait, p.at.Sub(now))
		}
	}
	return wait
}

// read reads a source. For PSS it also reads the size before and after, for carrying it forward.
func (s *Sampler) read(ctx context.Context, g *group, m *member, r *record.Sample) error {
	if m.process == nil {
		return m.src.Read(ctx, r)
	}
	if g.method == record.MethodStatm {
		err := m.src.Read(ctx, r)
		if err == nil {
			s.carry.sized(m.process, r)
		}
		return err
	}
	before, behind := record.NewSample(), record.NewSample()
	sized := s.peek(ctx, m.process, &before)
	if err := m.src.Read(ctx, r); err != nil {
		return err
	}
	if sized && s.peek(ctx, m.process, &behind) {
		s.carry.expensive(m.process, r, &before, &behind)
	}
	return nil
}

// peek reads the size of a process without recording it.
func (s *Sampler) peek(ctx context.Context, p *process, r *record.Sample) bool {
	m, g := s.carry.cheap(p)
	if m == nil || !g.begin(m) {
		return false
	}
	err := m.src.Read(ctx, r)
	return g.end(m) && err == nil && r.Shared != record.Absent
}

// sum records the total of a pass, and before it a hidden peak. A scan's total is recorded if it is the highest.
func (s *Sampler) sum(g *group, why kind, total *record.Total) (recorded bool) {
	if total.Processes == 0 {
		return false
	}
	switch g.method {
	case record.MethodStatm:
		if higher := s.carry.carry(total); why == scanning && !higher {
			return false
		}
	case record.MethodSmapsRollup:
		if hidden, was := s.carry.done(total); was {
			s.sink.Total(hidden)
		}
	}
	s.sink.Total(*total)
	return true
}
