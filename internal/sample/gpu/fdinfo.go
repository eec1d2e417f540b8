package gpu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// account is the kernel's account of a client of a GPU, which is one opening of its device. All its file descriptors
// have the same account.
type account struct {
	driver  string
	pci     string // empty: not on a PCI bus
	client  uint64
	regions []region
}

// region is a kind of memory, named by the driver.
type region struct {
	name                    string
	resident, total, legacy int64 // bytes; Absent: not reported
}

// size is the resident size, or if the driver does not report it, the requested one.
func (r region) size() int64 {
	switch {
	case r.resident != record.Absent:
		return r.resident
	case r.legacy != record.Absent: // amdgpu's old name for it
		return r.legacy
	}
	return r.total
}

// isOfMachine distinguishes system memory from the device's own. Drivers of devices without memory report all of it as
// the device's.
func (r region) isOfMachine() bool {
	name := strings.TrimRight(r.name, "0123456789")
	return name == "gtt" || name == "system" || name == "cpu"
}

// parseAccount parses a file in /proc/PID/fdinfo; nil if it does not belong to a GPU.
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
			return nil, fmt.Errorf("account of a client of %s: %s: %w", cmp.Or(a.driver, "a GPU"), key, err)
		}
	}
	if !known || a.driver == "" {
		return nil, nil
	}
	return a, nil
}

// take parses a line about memory. Engine cycles have names with the same prefix.
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
	if i := slices.IndexFunc(a.regions, func(r region) bool { return r.name == name }); i >= 0 {
		return &a.regions[i]
	}
	a.regions = append(a.regions, region{name, record.Absent, record.Absent, record.Absent})
	return &a.regions[len(a.regions)-1]
}

func parseSize(word string) (int64, error) {
	n, ok := bytesOf(word)
	if !ok {
		return 0, fmt.Errorf("%.40q is not a size, or its counter overflowed", word)
	}
	return n, nil
}

// fdinfoSource reads the GPU memory of a process from its accounts.
type fdinfoSource struct {
	drm    *drm
	pid    int
	start  uint64
	role   string
	client bool     // it was a client at least once
	names  []string // of devices, in order of appearance
}

func (d *drm) process(pid int, start uint64, role string) sample.Source {
	return &fdinfoSource{drm: d, pid: pid, start: start, role: role}
}

func (s *fdinfoSource) Describe() record.Source {
	return record.Source{Role: s.role, Method: Fdinfo, PID: s.pid, Start: s.start, Every: fdEvery,
		Sees: "resident memory of the process on the GPU and in the system, each DRM client once; requested memory " +
			"if the driver does not report what is resident",
		Blind: "sharing: a client counts in every process that has it, a buffer in every client; peaks between " +
			"two reads"}
}

// Read returns no values until the process is a client.
func (s *fdinfoSource) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	accounts, err := s.accounts()
	r.End = time.Now()
	if err != nil {
		return err
	}
	if s.drm.proc == "/proc" && !isStill(s.pid, s.start) { // checked after reading
		return fmt.Errorf("process %d: %w", s.pid, sample.ErrGone)
	}
	if s.client = s.client || len(accounts) > 0; s.client {
		r.Values = s.values(accounts)
	}
	return nil
}

// accounts reads the accounts of the process, each client once.
func (s *fdinfoSource) accounts() ([]*account, error) {
	dir := filepath.Join(s.drm.proc, strconv.Itoa(s.pid))
	fds, err := os.Open(filepath.Join(dir, "fd"))
	if err != nil {
		return nil, s.gone(err)
	}
	defer fds.Close()
	names, err := fds.Readdirnames(-1)
	if err != nil {
		return nil, s.gone(err)
	}
	var out []*account
	for _, name := range names {
		to, err := os.Readlink(filepath.Join(dir, "fd", name))
		if err != nil || !strings.HasPrefix(to, "/dev/dri/") && !strings.HasPrefix(to, "/dev/accel/") {
			continue // another file, or closed meanwhile
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
		if !slices.ContainsFunc(out, func(have *account) bool {
			return have.pci == a.pci && have.driver == a.driver && have.client == a.client
		}) {
			out = append(out, a)
		}
	}
	return out, nil
}

func (s *fdinfoSource) gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "no such process") {
		return fmt.Errorf("process %d: %w", s.pid, sample.ErrGone)
	}
	return err
}

// values sums clients by device. Memory that the process has freed is 0.
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
		if !slices.Contains(s.names, device) {
			s.names = append(s.names, device)
		}
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
