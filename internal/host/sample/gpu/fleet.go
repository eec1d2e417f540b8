package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
)

// unit is a device, or a partition of one.
type unit struct {
	record.GPUInfo
	divided bool // its memory is that of its partitions, which are units too
	mute    bool // nothing can be read
}

// state is a unit's figures, or an error.
type state struct {
	figures
	err error
}

// use is what a process holds of a unit's memory; hidden if the driver lists the process without an amount.
type use struct {
	unit, pid int
	bytes     int64
}

const hidden = record.Absent

// total as a unit means all units together.
const total = -1

// listing says which process holds what.
type listing struct {
	uses   []use
	failed []bool // by unit: its list can't be read
	err    error  // nothing can be read
}

// add adds a use. A process that is listed twice has the same amount in both lists, or it is hidden in one.
func (l *listing) add(u use) {
	for i, have := range l.uses {
		if have.unit == u.unit && have.pid == u.pid {
			l.uses[i].bytes = max(have.bytes, u.bytes)
			return
		}
	}
	l.uses = append(l.uses, u)
}

// lost is the error of a driver or GPU that has vanished for good. Only the sources of devices report it; those of
// processes end silently.
type lost string

func (l lost) Error() string { return string(l) }

// fleet reads a driver's devices once for all their sources. The driver is not called concurrently.
type fleet struct {
	units []unit
	// device and process are what the sources of devices and of processes have in common. The latter has no method
	// without lists of processes.
	device, process record.Source
	states          shared[[]state] // of all units, in order
	uses            shared[listing]
	guard           guard
	path            string // of the program that reads them; empty: none
	close           func() // nil: nothing is open
}

func (f *fleet) sources() []sample.Source {
	var out []sample.Source
	for i, u := range f.units {
		if !u.mute {
			s := &deviceSource{Source: f.device, fleet: f, at: i}
			s.Role = u.Role
			out = append(out, s)
		}
	}
	return out
}

func (f *fleet) sourceOf(pid int, start uint64, role string) sample.Source {
	s := &processSource{Source: f.process, fleet: f, held: make([]int64, len(f.units)), was: make([]bool, len(f.units)),
		lives: func() bool { return isStill(pid, start) }}
	s.Role, s.PID, s.Start = role, pid, start
	s.Sees = "GPU memory of the process as the driver counts it, by device and in total"
	return s
}

// deviceSource reads one unit.
type deviceSource struct {
	record.Source
	fleet  *fleet
	at     int
	had    int
	energy counter
}

func (s *deviceSource) Read(ctx context.Context, r *record.Sample) error {
	all, begin, end, err := s.fleet.states.get(ctx, &s.fleet.guard, &s.had)
	r.Begin, r.End = begin, end
	if err != nil {
		return err
	}
	if all[s.at].err != nil {
		return all[s.at].err
	}
	now := maps.Clone(all[s.at].figures) // shared with other samplers
	if err := now.sane(); err != nil {
		return err
	}
	if count, ok := now[joules]; ok {
		if now[joules], err = s.energy.since(count); err != nil {
			return err
		}
	}
	r.Values = now.values()
	return nil
}

// processSource reads the GPU memory of a process.
type processSource struct {
	record.Source
	fleet  *fleet
	had    int
	listed bool        // it was listed at least once
	held   []int64     // by unit, in the current reading
	was    []bool      // by unit: it was listed there at least once
	lives  func() bool // the pid was not reused
}

// Read returns no values until the driver has listed the process, because a hidden process, as in a container, may hold
// memory. It returns no total if a part is unknown.
func (s *processSource) Read(ctx context.Context, r *record.Sample) error {
	l, begin, end, err := s.fleet.uses.get(ctx, &s.fleet.guard, &s.had)
	r.Begin, r.End = begin, end
	var ended lost
	switch {
	case errors.Is(err, errHung), errors.As(l.err, &ended):
		return fmt.Errorf("%w: %w", cmp.Or(err, l.err), sample.ErrGone)
	case err != nil:
		return err
	case l.err != nil:
		return l.err
	}
	if !s.lives() { // checked after reading the list
		return fmt.Errorf("process %d: %w", s.PID, sample.ErrGone)
	}
	clear(s.held)
	sum := int64(hidden)
	for _, u := range l.uses {
		switch {
		case u.pid != s.PID:
			continue
		case u.unit == total:
			sum = u.bytes
		case s.fleet.units[u.unit].MemoryB > 0 && u.bytes > s.fleet.units[u.unit].MemoryB:
			return fmt.Errorf("counter overflow: %d bytes held of %d", u.bytes, s.fleet.units[u.unit].MemoryB)
		default:
			s.held[u.unit], s.was[u.unit] = u.bytes, true
		}
		s.listed = true
	}
	if sum != hidden {
		r.Values = []record.Value{{Name: "gpu_memory_bytes", Value: float64(sum)}}
	} else if s.listed {
		r.Values = s.values(l.failed)
	}
	return nil
}

func (s *processSource) values(failed []bool) []record.Value {
	out := make([]record.Value, 0, len(s.held)+1)
	sum, whole := 0.0, true
	for i, b := range s.held {
		if failed[i] || b == hidden {
			whole = false
			continue
		}
		if s.was[i] {
			out = append(out, record.Value{Name: s.fleet.units[i].Role + ".gpu_memory_bytes", Value: float64(b)})
			sum += float64(b)
		}
	}
	if !whole || len(out) == 0 {
		return out
	}
	return append(out, record.Value{Name: "gpu_memory_bytes", Value: sum})
}

// isStill reports whether a process still runs and its pid was not reused.
func isStill(pid int, start uint64) bool {
	p, err := proc.Look(pid)
	return err == nil && p.Start == start
}
