package gpu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
)

// driver is a way to several devices. Its methods are called one at a time.
type driver interface {
	units() []unit
	describe() about
	read() []state // of all units, in their order
	list() listing // nothing where there are no lists
	close()
}

// stopper is a driver whose answer that is being waited for can be given up.
type stopper interface{ interrupt() }

// about describes a driver's sources.
type about struct {
	method, process string // no process: it has no lists
	every, patience time.Duration
	sees, blind     string
	listsBlind      string
}

// unit is a device, or a part of a divided one.
type unit struct {
	record.GPUInfo
	divided bool // its memory is that of its parts, which are units too
	mute    bool // nothing can be read of it
}

// state is a unit's figures, or why there are none.
type state struct {
	figures
	err error
}

// use is what a process holds of a unit's memory; hidden where the driver lists the process and does not tell how much
// it holds.
type use struct {
	unit, pid int
	bytes     int64
}

const hidden = record.Absent

// total in a unit's place: the use is of all units together, and of which is not told.
const total = -1

// listing is who holds what.
type listing struct {
	uses   []use
	failed []bool // by unit: who holds memory of it is not known
	err    error  // nothing is known
}

// lost is why there will be no figures any more: a driver that vanished, a GPU that fell off the bus. It is for the
// sources of the devices to say; those of processes end without a word.
type lost string

func (l lost) Error() string { return string(l) }

// fleet reads a driver's devices once for all their sources.
type fleet struct {
	driver driver
	guard  *guard
	states shared[[]state]
	uses   shared[listing]
}

func (f *fleet) sources() []sample.Source {
	a := f.driver.describe()
	var out []sample.Source
	for i, u := range f.driver.units() {
		if !u.mute {
			out = append(out, &deviceSource{fleet: f, at: i, role: u.Role, about: a})
		}
	}
	return out
}

func (f *fleet) process(pid int, start uint64, role string) sample.Source {
	a := f.driver.describe()
	if a.process == "" {
		return nil
	}
	s := &processSource{fleet: f, pid: pid, start: start, role: role, about: a}
	who := &identity{pid: pid, start: start}
	s.lives, s.release = who.holds, who.close
	for _, u := range f.driver.units() {
		s.names, s.most = append(s.names, u.Role+".gpu_memory_bytes"), append(s.most, u.MemoryB)
	}
	s.held, s.was = make([]int64, len(s.names)), make([]bool, len(s.names))
	return s
}

func (f *fleet) close() {
	if s, ok := f.driver.(stopper); ok {
		s.interrupt()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// one that hangs is left to the kernel
	_, _ = within(ctx, f.guard, func() struct{} { f.driver.close(); return struct{}{} })
}

// deviceSource reads one unit.
type deviceSource struct {
	fleet  *fleet
	at     int
	role   string
	about  about
	had    int
	energy counter
}

func (s *deviceSource) Describe() record.Source {
	return record.Source{Role: s.role, Method: s.about.method, Every: s.about.every, Sees: s.about.sees,
		Blind: s.about.blind}
}

func (s *deviceSource) Read(ctx context.Context, r *record.Sample) error {
	all, begin, end, err := s.fleet.states.get(ctx, s.fleet.guard, &s.had)
	r.Begin, r.End = begin, end
	if err != nil {
		return err
	}
	st := all[s.at]
	if err := cmp.Or(st.err, st.sane()); err != nil {
		return err
	}
	if st.joules, err = s.energy.since(st.joules); err != nil {
		return err
	}
	r.Values = st.values()
	return nil
}

// processSource reads what a process holds of the units.
type processSource struct {
	fleet   *fleet
	pid     int
	start   uint64
	role    string
	about   about
	names   []string // of the values, by unit
	had     int
	listed  bool        // it was, once
	held    []int64     // by unit, in the reading at hand
	was     []bool      // by unit: it was listed there, once
	lives   func() bool // it is the process that it was
	release func() error
	most    []int64 // by unit, what it has; 0: not known
}

func (s *processSource) Describe() record.Source {
	return record.Source{Role: s.role, Method: s.about.process, PID: s.pid, Start: s.start, Every: s.about.every,
		Sees: "memory of GPUs that the driver counts for the process, by device and in all", Blind: s.about.listsBlind}
}

// Read gives no values until the driver has listed the process: one that it hides, as from within a container, is not
// one that holds nothing. There is no sum where a part of it is not known.
func (s *processSource) Read(ctx context.Context, r *record.Sample) error {
	l, begin, end, err := s.fleet.uses.get(ctx, s.fleet.guard, &s.had)
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
	if !s.lives() { // asked behind the list: what that has under the number was the process's then
		return fmt.Errorf("process %d: %w", s.pid, sample.ErrGone)
	}
	clear(s.held)
	sum := int64(hidden)
	for _, u := range l.uses {
		switch {
		case u.pid != s.pid:
			continue
		case u.unit == total:
			sum = u.bytes
		case s.most[u.unit] > 0 && u.bytes > s.most[u.unit]:
			return fmt.Errorf("it tells %d bytes held of the %d that there are: its counter has turned negative or wrapped", u.bytes, s.most[u.unit])
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
			out = append(out, record.Value{Name: s.names[i], Value: float64(b)})
			sum += float64(b)
		}
	}
	if !whole || len(out) == 0 {
		return out
	}
	return append(out, record.Value{Name: "gpu_memory_bytes", Value: sum})
}

// Close lets go of the process.
func (s *processSource) Close() error {
	if s.release == nil {
		return nil
	}
	return s.release()
}

func startOf(pid int) (uint64, error) {
	p, err := proc.Look(pid)
	return p.Start, err
}

// identity knows a process again, whatever its number is given to later. Its descriptor stays bound to the process:
// that is one read, where looking for its start takes five times as long.
type identity struct {
	pid   int
	start uint64
	file  *os.File // nil until it is first asked for
	buf   [64]byte
}

func (i *identity) holds() bool {
	if i.file == nil {
		f, err := os.Open(filepath.Join("/proc", strconv.Itoa(i.pid), "statm"))
		if err != nil {
			return false
		}
		// of who has the number now that the file is open
		if start, err := startOf(i.pid); err != nil || start != i.start {
			_ = f.Close() // it was not read
			return false
		}
		i.file = f
	}
	n, _ := i.file.ReadAt(i.buf[:], 0)
	return n > 0 && !bytes.HasPrefix(i.buf[:n], []byte("0 ")) // one that has ended and was not waited for has no memory
}

func (i *identity) close() error {
	if i.file == nil {
		return nil
	}
	return i.file.Close()
}
