package proc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// Process is one that was looked at. A pid alone can be given out again: who it is, is pid and start.
type Process struct {
	PID    int
	Parent int
	Start  uint64 // in the system's own unit
	Name   string // as the system has it, cut off perhaps

	thread bool // of a process, and none itself
}

// Young tells whether a process was started less than a second ago: it may soon become the program that it was started
// for.
func (p Process) Young() bool { return isYoung(p) }

// Family follows processes and all their descendants: those there are, and those that come later. Who was once seen
// stays a member until it ends, also where its parent ends first. A process that was never there at a look is not
// known, and neither is one whose parent came and went between two looks. This very process is never a member.
//
// Its methods are called by one goroutine at a time.
type Family struct {
	// Joins tells who belongs to the family beside the descendants; nil: nobody. A process is asked about when it is
	// first seen, for a while after (it may still become another program), and now and then.
	Joins func(Process) bool
	// Except tells who never belongs to the family, nor so its descendants; nil: nobody.
	Except func(Process) bool

	births    *births
	members   map[int]*Member
	young     map[int]time.Time // who was judged a stranger, and since when
	everybody bool              // are to be looked at, next time
	self      int
}

// Member is a process of a family.
type Member struct {
	Process
	Sources []sample.Source // without a role; none where they may not be read
	Err     error           // why there are no sources

	probe   sample.Source
	reading record.Sample // nobody's
}

// youngAtOnce is how many of those who may become another program are looked at again at a time, whoever they are:
// strangers that start one program after the other must not be expensive.
const youngAtOnce = 32

// youth is how long a process is looked at again and again: a shell's child becomes the program that it was started for
// within it.
const youth = time.Second

// Everybody is looked at that often, or more rarely where it would take over one part in so many of a core: somebody
// may be given another parent, hardly ever, or become another program that joins.
const (
	scanEvery, scanShare = 10 * time.Second, 1000
	joinEvery, joinShare = 2 * time.Second, 200
)

// NewFamily makes a family without members.
func NewFamily() *Family {
	return &Family{births: newBirths(), members: map[int]*Member{}, young: map[int]time.Time{}, everybody: true,
		self: os.Getpid()}
}

// Add makes a process a member; its descendants are found at the next Look.
func (f *Family) Add(pid int) (*Member, error) {
	p, err := Look(pid)
	if err != nil {
		return nil, err
	}
	f.everybody = true
	return f.add(p)
}

func (f *Family) add(p Process) (*Member, error) {
	if m := f.members[p.PID]; m != nil && m.Start == p.Start && m.Alive() {
		return m, nil
	}
	sources, err := Sources(p.PID, "")
	if isGone(err) {
		return nil, err
	}
	if len(sources) > 0 && sources[0].Describe().Start != p.Start { // another has the number now
		closeAll(sources)
		return nil, fmt.Errorf("process %d: %w", p.PID, sample.ErrGone)
	}
	m := &Member{Process: p, Sources: sources, Err: err}
	if len(sources) > 0 {
		m.probe = sources[0]
	}
	if !m.Alive() { // a thread of the kernel's, which has no memory of its own
		closeAll(sources)
		return nil, fmt.Errorf("process %d: %w", p.PID, sample.ErrGone)
	}
	delete(f.young, p.PID)
	f.members[p.PID] = m
	return m, nil
}

func closeAll(sources []sample.Source) {
	for _, s := range sources {
		if c, ok := s.(interface{ Close() error }); ok {
			_ = c.Close() // it was only read
		}
	}
}

// Drop forgets a member, which has ended, and lets go of its sources.
func (f *Family) Drop(m *Member) {
	if f.members[m.PID] == m {
		delete(f.members, m.PID)
	}
	closeAll(m.Sources)
}

// Members gives the members in the order of their pids.
func (f *Family) Members() []*Member {
	out := slices.Collect(maps.Values(f.members))
	slices.SortFunc(out, func(a, b *Member) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

// Alive tells whether a member still runs.
func (m *Member) Alive() bool {
	if m.probe == nil {
		now, err := Look(m.PID)
		return err == nil && now.Start == m.Start
	}
	return !isGone(m.probe.Read(context.Background(), &m.reading))
}

// IsItself tells a process that has become the program it was started for from its parent's double, which it is for a
// moment.
func (m *Member) IsItself() bool {
	line := CommandLine(m.PID)
	return len(line) > 0 && !slices.Equal(line, CommandLine(m.Parent))
}

// Close lets go of everything.
func (f *Family) Close() {
	for _, m := range f.members {
		f.Drop(m)
	}
	f.births.close()
}

// Look finds who has come. Where nothing was started on the machine since the last look it costs a few microseconds.
func (f *Family) Look() (appeared []*Member) { return f.look(false) }

// LookAtAll is Look without relying on what may have been missed.
func (f *Family) LookAtAll() (appeared []*Member) { return f.look(true) }

func (f *Family) look(everybody bool) (appeared []*Member) {
	begin := time.Now()
	pids, all := f.births.next(everybody || f.everybody)
	if all {
		f.everybody = false
		every, share := scanEvery, scanShare
		if f.Joins != nil {
			every, share = joinEvery, joinShare
		}
		defer func() { f.births.scanned(time.Since(begin), every, share) }()
	}
	if young := f.stillYoung(begin); !all {
		pids = append(pids, young...)
	}
	var strangers []Process
	for _, pid := range pids {
		if m := f.members[pid]; pid == f.self || m != nil && m.Alive() {
			continue
		}
		p, err := glance(pid)
		switch {
		case errors.Is(err, sample.ErrGone):
			f.births.missed(pid, begin)
			delete(f.young, pid)
		case err == nil && !p.thread:
			strangers = append(strangers, p)
		}
	}
	// A parent may come behind its child in a list of everybody, so again until nobody joins any more.
	for joined := true; joined; {
		joined = false
		strangers = slices.DeleteFunc(strangers, func(p Process) bool {
			if !f.belongs(p, all) {
				return false
			}
			if m, err := f.add(p); err == nil {
				appeared = append(appeared, m)
				joined = true
			}
			return true
		})
	}
	f.meet(strangers, begin)
	return appeared
}

// belongs tells whether a process is a member's child, or joins in its own right.
func (f *Family) belongs(p Process, listed bool) bool {
	parent := f.members[p.Parent]
	if !(parent != nil && parent.Start <= p.Start && parent.Alive()) && !(f.Joins != nil && f.Joins(p)) {
		return false
	}
	return (listed || !isThread(p.PID)) && !(f.Except != nil && f.Except(p))
}

// stillYoung gives those who may become another program.
func (f *Family) stillYoung(now time.Time) (pids []int) {
	for pid, since := range f.young {
		if now.Sub(since) > youth {
			delete(f.young, pid)
			continue
		}
		if len(pids) < youngAtOnce {
			pids = append(pids, pid)
		}
	}
	return pids
}

// meet keeps who is new and may still become another program; without Joins that changes nothing.
func (f *Family) meet(strangers []Process, now time.Time) {
	if f.Joins == nil {
		return
	}
	for _, p := range strangers {
		if _, known := f.young[p.PID]; !known && isYoung(p) {
			f.young[p.PID] = now
		}
	}
}
