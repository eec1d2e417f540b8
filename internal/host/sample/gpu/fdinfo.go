package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// account is the kernel's account of a client of a GPU, which is one opening of its device. All its file descriptors
// have the same account.
type account struct {
	driver  string
	pci     string // empty: not on a PCI bus
	client  uint64
	regions map[string]region // by the driver's name for a kind of memory
}

// region has the sizes of a kind of memory in bytes, by what they count.
type region map[string]int64

// size is the resident size, under its new or amdgpu's old name. If the driver does not report it, it is the requested
// one.
func (r region) size() int64 {
	for _, kind := range []string{"resident", "memory"} {
		if n, ok := r[kind]; ok {
			return n
		}
	}
	return r["total"]
}

// ofMachine distinguishes system memory from the device's own. Drivers of devices without memory report all of it as
// the device's.
var ofMachine = regexp.MustCompile(`^(gtt|system|cpu)\d*$`)

// memoryKey matches the name of a line about memory. Engine cycles have names with the same prefix.
var memoryKey = regexp.MustCompile(`^drm-(resident|total|memory)-(.+)$`)

// parseAccount parses a file in /proc/PID/fdinfo; nil if it does not belong to a GPU.
func parseAccount(text []byte) (*account, error) {
	a, known := &account{regions: map[string]region{}}, false
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		word := strings.TrimSpace(value)
		switch key {
		case "drm-driver":
			a.driver = word
		case "drm-pdev":
			a.pci = word
		case "drm-client-id":
			id, err := strconv.ParseUint(word, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("account of a client of %s: %s: %w", cmp.Or(a.driver, "a GPU"), key, err)
			}
			a.client, known = id, true
		default:
			m := memoryKey.FindStringSubmatch(key)
			if m == nil || strings.HasPrefix(m[2], "cycles") {
				continue
			}
			n, ok := bytesOf(word)
			if !ok {
				return nil, fmt.Errorf("account of a client of %s: %s: %.40q is not a size, or its counter overflowed",
					cmp.Or(a.driver, "a GPU"), key, word)
			}
			if a.regions[m[2]] == nil {
				a.regions[m[2]] = region{}
			}
			a.regions[m[2]][m[1]] = n
		}
	}
	if !known || a.driver == "" {
		return nil, nil
	}
	return a, nil
}

// fdinfoSource reads the GPU memory of a process from its accounts.
type fdinfoSource struct {
	record.Source
	drm    *drm
	client bool     // it was a client at least once
	names  []string // of devices, in order of appearance
}

func (d *drm) process(pid int, start uint64, role string) sample.Source {
	return &fdinfoSource{drm: d, Source: record.Source{Role: role, Method: Fdinfo, PID: pid, Start: start,
		Every: fdEvery,
		Sees: "resident memory of the process on the GPU and in the system, each DRM client once; requested memory " +
			"if the driver does not report what is resident",
		Blind: "sharing: a client counts in every process that has it, a buffer in every client; peaks between " +
			"two reads"}}
}

// Read returns no values until the process is a client.
func (s *fdinfoSource) Read(_ context.Context, r *record.Sample) error {
	r.Begin = time.Now()
	accounts, err := s.accounts()
	r.End = time.Now()
	if err != nil {
		return err
	}
	if s.drm.proc == "/proc" && !isStill(s.PID, s.Start) { // checked after reading
		return fmt.Errorf("process %d: %w", s.PID, sample.ErrGone)
	}
	if s.client = s.client || len(accounts) > 0; s.client {
		r.Values = s.values(accounts)
	}
	return nil
}

// accounts reads the accounts of the process, each client once.
func (s *fdinfoSource) accounts() ([]*account, error) {
	dir := filepath.Join(s.drm.proc, strconv.Itoa(s.PID))
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
		return fmt.Errorf("process %d: %w", s.PID, sample.ErrGone)
	}
	return err
}

// values sums clients by device. Memory that the process has freed is 0.
func (s *fdinfoSource) values(accounts []*account) []record.Value {
	held, system := map[string]float64{}, 0.0
	for _, a := range accounts {
		device := cmp.Or(s.drm.roles[a.pci], cmp.Or(a.pci, s.drm.alone, a.driver))
		if _, seen := held[device]; !seen {
			held[device] = 0
		}
		for name, r := range a.regions {
			if ofMachine.MatchString(name) {
				system += float64(r.size())
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
		record.Value{Name: "gpu_system_memory_bytes", Value: system})
}
