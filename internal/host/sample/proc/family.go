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

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// Process is a process at one moment. PID and Start identify it, because pids are reused.
type Process struct {
	PID    int
	Parent int
	Start  uint64 // start time in the system's unit
	Name   string // from the system, perhaps truncated
}

func isGone(err error) bool { return errors.Is(err, sample.ErrGone) }

// Family follows processes and all their descendants, present and future. A member stays one until it ends, even if its
// parent ends first. It can't find a process that ends between two calls of Look, or whose parent does. This process is
// never a member.
//
// Its methods must not be called concurrently.
type Family struct {
	// Joins reports whether a process belongs to the family besides the descendants; nil: none does. It is called when
	// a process is first seen, for a while after that because it may exec another program, and now and then.
	Joins func(Process) bool
	// Except reports whether a process never belongs to the family, nor its descendants; nil: none.
	Except func(Process) bool

	births    births
	members   map[int]*Member
	young     map[int]time.Time // strangers that may still exec another program, and since when
	everybody bool              // the next Look checks all processes
	self      int
}

// Member is a process of a family.
type Member struct {
	Process
	Sources []sample.Source // without a role; none without permission
	Err     error           // why there are no sources

	reading record.Sample // discarded
}

// youth is how long a process is checked again: it usually execs its program within that time.
const youth = time.Second

// Intervals of checking all processes, and limits for its share of a core. A process can, rarely, get another parent,
// or exec a program that joins.
const (
	scanEvery, scanShare = 10 * time.Second, 1000
	joinEvery, joinShare = 2 * time.Second, 200
)

// NewFamily returns a family without members.
func NewFamily() *Family {
	return &Family{members: map[int]*Member{}, young: map[int]time.Time{}, everybody: true, self: os.Getpid()}
}

// Add adds a process; the next Look finds its descendants.
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
	sources, err := Sources(p.PID, "", false)
	if isGone(err) {
		return nil, err
	}
	if len(sources) > 0 && sources[0].Describe().Start != p.Start { // the pid was reused
		closeAll(sources)
		return nil, fmt.Errorf("process %d: %w", p.PID, sample.ErrGone)
	}
	m := &Member{Process: p, Sources: sources, Err: err}
	if !m.Alive() { // a kernel thread, without memory of its own
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
			_ = c.Close() // read-only
		}
	}
}

// Drop removes a member that has ended, and closes its sources.
func (f *Family) Drop(m *Member) {
	if f.members[m.PID] == m {
		delete(f.members, m.PID)
	}
	closeAll(m.Sources)
}

// Members returns the members ordered by pid.
func (f *Family) Members() []*Member {
	out := slices.Collect(maps.Values(f.members))
	slices.SortFunc(out, func(a, b *Member) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

// Alive reports whether a member still runs.
func (m *Member) Alive() bool {
	if len(m.Sources) == 0 {
		now, err := Look(m.PID)
		return err == nil && now.Start == m.Start
	}
	return !isGone(m.Sources[0].Read(context.Background(), &m.reading))
}

// IsItself reports whether a process is not, or no longer, a copy of its parent.
func (m *Member) IsItself() bool {
	line := CommandLine(m.PID)
	return len(line) > 0 && !slices.Equal(line, CommandLine(m.Parent))
}

// Close drops all members.
func (f *Family) Close() {
	for _, m := range f.members {
		f.Drop(m)
	}
}

// Look returns new members. If no process was started on the machine since the last call, it takes a few microseconds.
func (f *Family) Look() (appeared []*Member) { return f.look(false) }

// LookAtAll is Look with a check of all processes.
func (f *Family) LookAtAll() (appeared []*Member) { return f.look(true) }

func (f *Family) look(everybody bool) (appeared []*Member) {
	begin := time.Now()
	pids, all := f.births.next(everybody || f.everybody)
	if all {
		f.everybody = false
		every, share := scanEvery, time.Duration(scanShare)
		if f.Joins != nil {
			every, share = joinEvery, joinShare
		}
		defer func() { f.births.rest = time.Now().Add(max(every, time.Since(begin)*share)) }()
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
			delete(f.births.known, pid) // listed, but not readable yet
			delete(f.young, pid)
		case err == nil:
			strangers = append(strangers, p)
		}
	}
	// A parent may follow its child in the list, so repeat until none joins.
	for joined := true; joined; {
		joined = false
		strangers = slices.DeleteFunc(strangers, func(p Process) bool {
			if !f.belongs(p) {
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

// belongs reports whether a process is a member's child, or joins by itself.
func (f *Family) belongs(p Process) bool {
	parent := f.members[p.Parent]
	if !(parent != nil && parent.Start <= p.Start && parent.Alive()) && !(f.Joins != nil && f.Joins(p)) {
		return false
	}
	return f.Except == nil || !f.Except(p)
}

// stillYoung returns strangers that may still exec another program.
func (f *Family) stillYoung(now time.Time) (pids []int) {
	for pid, since := range f.young {
		if now.Sub(since) > youth {
			delete(f.young, pid)
			continue
		}
		pids = append(pids, pid)
	}
	return pids
}

// meet remembers new strangers that may still exec another program, if there is a Joins.
func (f *Family) meet(strangers []Process, now time.Time) {
	if f.Joins == nil {
		return
	}
	for _, p := range strangers {
		if _, known := f.young[p.PID]; !known && p.Young() {
			f.young[p.PID] = now
		}
	}
}
