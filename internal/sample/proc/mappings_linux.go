package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// Mappings reads of which kinds a process's PSS is. It is read at phase edges, and by a Highest in between.
type Mappings struct {
	pid    int
	role   string
	start  uint64
	status *os.File // kept open
	push   func(record.Sample)

	mu   sync.Mutex
	last holding // what was read last
}

// holding is what a process held at a moment: PSS by kind, and at the same time its RSS that is anonymous, and shared memory.
type holding struct {
	kinds             Kinds
	anonymous, shared int64
	cost              time.Duration
}

// MappingsOf gives the source of a process.
func MappingsOf(pid int, role string) (*Mappings, error) {
	now, err := Look(pid)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	status, err := os.Open(of(pid, "status"))
	if err != nil {
		return nil, gone(pid, err)
	}
	return &Mappings{pid: pid, role: role, start: now.Start, status: status}, nil
}

// Describe says what it sees.
func (m *Mappings) Describe() record.Source {
	return record.Source{Role: m.role, Method: record.MethodSmaps, PID: m.pid, Start: m.start,
		Sees: "proportional size by kind of mapping: anonymous memory, code made while the program runs, shared memory, files; " +
			"at phase edges, and once for the highest moment of a load, carried there from the latest reading by the growth of anonymous and shared RSS",
		Blind: "GPU memory; what anonymous memory is used for; which process asked for shared memory"}
}

// ReadsAt leaves out the edges at which nothing is asked of it: to read all mappings of a browser takes some 50 ms.
func (m *Mappings) ReadsAt(ended record.Phase) bool {
	return ended == record.Baseline || ended == record.Load || ended == record.Measure
}

// Pushes takes the way by which a Highest tells.
func (m *Mappings) Pushes(push func(record.Sample)) { m.push = push }

// Close lets go of the descriptor.
func (m *Mappings) Close() error {
	return m.status.Close()
}

// Read reads all mappings.
func (m *Mappings) Read(_ context.Context, r *record.Sample) error {
	h, err := m.read(r)
	if err == nil {
		r.Values = h.kinds.values()
	}
	return err
}

func (k Kinds) values() []record.Value {
	var out []record.Value
	for kind, n := range k {
		out = append(out, record.Value{Name: Kind(kind).Metric(), Value: float64(n)})
	}
	return out
}

func (m *Mappings) read(r *record.Sample) (holding, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Begin = time.Now()
	h, err := m.sizes()
	if err != nil {
		return h, err
	}
	now, err := Look(m.pid)
	if err != nil {
		return h, err
	}
	if now.Start != m.start {
		return h, fmt.Errorf("process %d is another one now: %w", m.pid, sample.ErrGone)
	}
	text.mu.Lock()
	defer text.mu.Unlock()
	if err := text.read(of(m.pid, "smaps")); err != nil {
		return h, gone(m.pid, err)
	}
	if h.kinds, err = kindsOf(text.buf); err != nil {
		return h, fmt.Errorf("process %d: %w", m.pid, err)
	}
	r.End = time.Now()
	h.cost = r.End.Sub(r.Begin)
	m.last = h
	return h, nil
}

// sizes are those of RSS alone.
func (m *Mappings) sizes() (holding, error) {
	var buf [4096]byte // longer than any
	n, err := m.status.ReadAt(buf[:], 0)
	if n == 0 {
		return holding{}, gone(m.pid, err)
	}
	anonymous, ok := statusSize(buf[:n], "\nRssAnon:")
	shared, also := statusSize(buf[:n], "\nRssShmem:")
	if !ok || !also {
		return holding{}, fmt.Errorf("process %d: %w", m.pid, sample.ErrGone) // what has ended has no memory left
	}
	return holding{anonymous: anonymous, shared: shared}, nil
}

// statusSize finds a size in a status file, in bytes.
func statusSize(status []byte, name string) (int64, bool) {
	_, rest, ok := bytes.Cut(status, []byte(name))
	if !ok {
		return 0, false
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(rest, " \t"), []byte("\n"))
	size, ok := bytes.CutSuffix(line, []byte(" kB"))
	n, more := number(size)
	return n << 10, ok && len(size) > 0 && more == nil
}

// now is what was read last, and what RSS is now; false where mappings never were read, or the process has ended.
func (m *Mappings) now() (read, sees holding, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sees, err := m.sizes()
	return m.last, sees, err == nil && m.last.kinds.Sum() > 0
}

// mapsText has room for the mappings of one process. They are up to a megabyte, and one process is read at a time.
type mapsText struct {
	mu  sync.Mutex
	buf []byte
}

var text mapsText

func (t *mapsText) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	t.buf = t.buf[:0]
	for {
		if cap(t.buf)-len(t.buf) < 64<<10 {
			t.buf = append(make([]byte, 0, 2*cap(t.buf)+256<<10), t.buf...)
		}
		n, err := f.Read(t.buf[len(t.buf):cap(t.buf)])
		t.buf = t.buf[:len(t.buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

var errMappings = errors.New("its mappings are not understood")

// kindsOf reads a smaps file. A mapping begins with its addresses, in lower-case hexadecimal digits; what follows are fields, whose names
// begin with a capital letter.
func kindsOf(smaps []byte) (Kinds, error) {
	var out Kinds
	kind := Kind(-1)
	for len(smaps) > 0 {
		line, rest, _ := bytes.Cut(smaps, []byte("\n"))
		smaps = rest
		switch {
		case len(line) == 0:
			return out, errMappings
		case line[0] < 'A' || line[0] > 'Z':
			permissions, name, ok := mapping(line)
			if !ok {
				return out, errMappings
			}
			kind = kindOf(permissions, name)
		case bytes.HasPrefix(line, []byte("Pss:")):
			size, unit, _ := bytes.Cut(bytes.TrimLeft(line[len("Pss:"):], " \t"), []byte(" "))
			n, rest := number(size)
			if kind < 0 || len(size) == 0 || len(size) > 12 || rest != nil || string(unit) != "kB" {
				return out, errMappings
			}
			out[kind] += n << 10
		}
	}
	return out, nil
}

// mapping takes a mapping's first line apart: addresses, permissions, offset, device, inode, name.
func mapping(line []byte) (permissions, name []byte, ok bool) {
	for field := range 5 {
		word, rest, _ := bytes.Cut(line, []byte(" "))
		if len(word) == 0 {
			return nil, nil, false
		}
		if field == 1 {
			permissions = word
		}
		line = rest
	}
	return permissions, bytes.TrimLeft(line, " "), len(permissions) == 4
}

// kindOf goes by names as Linux gives them: memory files have those of their makers, other shared memory that of its place.
func kindOf(permissions, name []byte) Kind {
	executable := permissions[2] == 'x'
	kind := Files
	switch {
	case len(name) == 0 || bytes.HasPrefix(name, []byte("[anon")) || bytes.Equal(name, []byte("[heap]")) ||
		bytes.HasPrefix(name, []byte("[stack")):
		kind = Anonymous
	case bytes.HasPrefix(name, []byte("/memfd:")), bytes.HasPrefix(name, []byte("/dev/shm/")), bytes.HasPrefix(name, []byte("/dev/zero")),
		bytes.HasPrefix(name, []byte("/SYSV")):
		kind = Shared
	}
	if executable && kind != Files {
		return Code
	}
	return kind
}
