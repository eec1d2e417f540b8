package gpu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// account is what the kernel tells of a client of a GPU: one opening of its device. Its descriptors may be many, and
// all tell the same.
type account struct {
	driver  string
	pci     string // empty: the device is on no PCI bus
	client  uint64
	regions []region
}

// region is a kind of memory, in the driver's own words.
type region struct {
	name                    string
	resident, total, legacy int64 // bytes; Absent: not told
}

// size is what is really there; where the driver does not tell that, what was asked for.
func (r region) size() int64 {
	switch {
	case r.resident != record.Absent:
		return r.resident
	case r.legacy != record.Absent: // amdgpu's first words for it
		return r.legacy
	}
	return r.total
}

// isOfMachine tells memory of the machine from the device's own. On devices that have none of their own drivers call
// all of it theirs.
func (r region) isOfMachine() bool {
	name := strings.TrimRight(r.name, "0123456789")
	return name == "gtt" || name == "system" || name == "cpu"
}

// parseAccount reads a file of /proc/PID/fdinfo; nil where it is of no GPU. A number that can't be one is an error.
func parseAccount(text []byte) (*account, error) {
	a, known := &account{}, false
	for line := range bytes.Lines(text) {
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !bytes.HasPrefix(key, []byte("drm-")) {
			continue
		}
		word := strings.TrimSpace(string(value))
		var err error
		switch key := string(key); key {
		case "drm-driver":
			a.driver = word
		case "drm-pdev":
			a.pci = word
		case "drm-client-id":
			a.client, err = strconv.ParseUint(word, 10, 64)
			known = err == nil
		default:
			err = a.take(key, word)
		}
		if err != nil {
			return nil, fmt.Errorf("the account of a client of %s: %s: %w", cmp.Or(a.driver, "a GPU"), key, err)
		}
	}
	if !known || a.driver == "" {
		return nil, nil
	}
	return a, nil
}

// take reads a line about memory. Cycles of engines are told under names of the same beginning.
func (a *account) take(key, word string) error {
	for _, kind := range []struct {
		prefix string
		to     func(*region) *int64
	}{
		{"drm-resident-", func(r *region) *int64 { return &r.resident }},
		{"drm-total-", func(r *region) *int64 { return &r.total }},
		{"drm-memory-", func(r *region) *int64 { return &r.legacy }},
	} {
		name, ok := strings.CutPrefix(key, kind.prefix)
		if !ok || name == "" || strings.HasPrefix(name, "cycles") {
			continue
		}
		n, err := parseSize(word)
		if err != nil {
			return err
		}
		*kind.to(a.region(name)) = n
	}
	return nil
}

func (a *account) region(name string) *region {
	for i := range a.regions {
		if a.regions[i].name == name {
			return &a.regions[i]
		}
	}
	a.regions = append(a.regions, region{name, record.Absent, record.Absent, record.Absent})
	return &a.regions[len(a.regions)-1]
}

// parseSize reads a number with its unit; without one it is of bytes.
func parseSize(word string) (int64, error) {
	number, unit, _ := strings.Cut(word, " ")
	shift, ok := map[string]uint{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[strings.TrimSpace(unit)]
	if !ok {
		return 0, fmt.Errorf("%.40q has a unit that is not known", word)
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no size", word)
	}
	if n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%.40s: the counter has turned negative or wrapped", word)
	}
	return int64(n << shift), nil
}

// fdinfoSource reads what a process holds as a client of GPUs.
type fdinfoSource struct {
	drm    *drm
	pid    int
	start  uint64
	role   string
	client bool     // it was one, once
	names  []string // of devices, in the order in which they were seen
}

func (d *drm) process(pid int, start uint64, role string) sample.Source {
	return &fdinfoSource{drm: d, pid: pid, start: start, role: role}
}

func (s *fdinfoSource) Describe() record.Source {
	return record.Source{Role: s.role, Method: Fdinfo, PID: s.pid, Start: s.start, Every: fdEvery,
		Sees: "what is resident in the GPU's memory, and in the machine's, for the process as a client of the DRM, each client once; where a " +
			"driver does not tell that, what was asked for",
		Blind: "memory is counted in every process that a client was handed to, and buffers in every client that shares them; peaks " +
			"between two reads"}
}

// Read gives no values until the process is a client.
func (s *fdinfoSource) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	accounts, err := s.accounts()
	r.End = time.Now()
	if err != nil {
		return err
	}
	if s.drm.look != nil { // behind what was read: that was the process's then
		if start, err := s.drm.look(s.pid); err != nil || start != s.start {
			return fmt.Errorf("process %d: %w", s.pid, sample.ErrGone)
		}
	}
	if s.client = s.client || len(accounts) > 0; s.client {
		r.Values = s.values(accounts)
	}
	return nil
}

// accounts reads those of the process, each client's once.
func (s *fdinfoSource) accounts() ([]*account, error) {
	dir := filepath.Join(s.drm.proc, strconv.Itoa(s.pid))
	fds, err := os.Open(filepath.Join(dir, "fd"))
	if err != nil {
		return nil, s.gone(err)
	}
	defer func() { _ = fds.Close() }() // it was only read
	names, err := fds.Readdirnames(-1)
	if err != nil {
		return nil, s.gone(err)
	}
	var out []*account
next:
	for _, name := range names {
		to, err := os.Readlink(filepath.Join(dir, "fd", name))
		if err != nil || !strings.HasPrefix(to, "/dev/dri/") && !strings.HasPrefix(to, "/dev/accel/") {
			continue // a file, a socket, or one that was closed meanwhile
		}
		text, err := os.ReadFile(filepath.Join(dir, "fdinfo", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, s.gone(err)
		}
		a, err := parseAccount(text)
		if err != nil {
			return nil, err
		}
		if a == nil {
			continue
		}
		for _, have := range out {
			if have.pci == a.pci && have.driver == a.driver && have.client == a.client {
				continue next
			}
		}
		out = append(out, a)
	}
	return out, nil
}

func (s *fdinfoSource) gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "no such process") {
		return fmt.Errorf("process %d: %w", s.pid, sample.ErrGone)
	}
	return err
}

// values sums clients by device. What the process held and holds no more is nought.
func (s *fdinfoSource) values(accounts []*account) []record.Value {
	held, ofMachine := map[string]float64{}, 0.0
	for _, a := range accounts {
		device := cmp.Or(s.drm.roles[a.pci], cmp.Or(a.pci, s.drm.alone, a.driver))
		if _, seen := held[device]; !seen {
			held[device] = 0
		}
		for _, r := range a.regions {
			if r.isOfMachine() {
				ofMachine += float64(r.size())
			} else {
				held[device] += float64(r.size())
			}
		}
		s.see(device)
	}
	sum := 0.0
	out := make([]record.Value, 0, len(s.names)+2)
	for _, name := range s.names {
		out = append(out, record.Value{Name: name + ".gpu_memory_bytes", Value: held[name]})
		sum += held[name]
	}
	return append(out, record.Value{Name: "gpu_memory_bytes", Value: sum},
		record.Value{Name: "gpu_system_memory_bytes", Value: ofMachine})
}

func (s *fdinfoSource) see(device string) {
	for _, have := range s.names {
		if have == device {
			return
		}
	}
	s.names = append(s.names, device)
}
