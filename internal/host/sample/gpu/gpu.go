// Package gpu reads memory, load, power and temperature of GPUs, and the GPU memory of processes.
//
// It reads NVIDIA GPUs with NVML, AMD GPUs from sysfs and the DRM accounts in /proc/PID/fdinfo, or with amd-smi or
// rocm-smi where sysfs lacks figures, and other GPUs from fdinfo only. The energy of CPUs comes from RAPL. Only this
// package uses cgo, and only on Linux; without cgo there is no NVML.
//
// On a machine without a GPU there are no sources, and no cost. What a driver does not report is absent. A process has
// no figures until a driver lists it, because a container may hide it.
//
// It can't tell reserved from used memory of a framework, or see processes that the driver does not list, as in another
// container.
package gpu

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
)

// Methods of the sources.
const (
	NVML        = "nvml"
	NVMLProcess = "nvml_process"
	Sysfs       = "drm_sysfs"
	Fdinfo      = "drm_fdinfo"
	AMDSMI      = "amd_smi"
	ROCmSMI     = "rocm_smi"
	RAPL        = "rapl"
)

// Intervals of sources, by cost.
const (
	cheapEvery = 250 * time.Millisecond
	fdEvery    = 500 * time.Millisecond
	raplEvery  = time.Second
	toolEvery  = 5 * time.Second
)

// Options says where to look; the zero value is this machine. With another Sys, NVML is not used.
type Options struct {
	Sys  string // instead of /sys
	Proc string // instead of /proc
}

// Monitor knows the GPUs of a machine. Several samplers may share it. Its fields are read-only.
type Monitor struct {
	GPUs     []record.GPUInfo // the devices, each followed by its partitions
	None     string           // why there is no GPU; empty if there is one, even if it can't be read
	Warnings []record.Warning // each to be shown once for a run

	fleets []*fleet
	drm    *drm // nil: no DRM accounts
	rapl   []*zone
}

// Open looks for GPUs. It never fails: problems are Warnings.
func Open(ctx context.Context, o Options) *Monitor {
	var nvidia *fleet
	err := errNoLibrary
	if o.Sys == "" {
		nvidia, err = opening(ctx, openNVML)
	}
	o.Sys, o.Proc = cmp.Or(o.Sys, "/sys"), cmp.Or(o.Proc, "/proc")
	m := &Monitor{}
	m.open(ctx, o, nvidia, err)
	return m
}

// open is Open after the search for NVIDIA GPUs.
func (m *Monitor) open(ctx context.Context, o Options, nvidia *fleet, err error) {
	if nvidia != nil {
		m.add(nvidia)
		if err != nil {
			m.warn("unreadable-gpu", "can't read an NVIDIA GPU: "+err.Error())
		}
	}
	cards := findCards(o.Sys)
	if m.drm = newDRM(o, cards, m.next()); m.drm != nil {
		m.add(m.drm.fleet())
	}
	if (m.drm == nil || !m.drm.memory) && amdIsHere(o.Sys, cards) {
		if tool := openTool(ctx, m.next()); tool != nil {
			m.add(tool)
		}
	}
	if nvidia == nil {
		m.explain(err, cards)
	}
	var denied error
	if m.rapl, denied = findZones(o.Sys); denied != nil {
		m.warn("no-cpu-energy", "no permission to read the CPU's energy: "+denied.Error())
	}
}

// next returns the number of the next role. NVML's roles have gaps for GPUs that can't be read.
func (m *Monitor) next() int {
	next := 0
	for _, g := range m.GPUs {
		if n, err := strconv.Atoi(strings.TrimPrefix(g.Role, "gpu")); err == nil { // partitions have a suffix
			next = max(next, n+1)
		}
	}
	return next
}

func (m *Monitor) add(f *fleet) {
	for _, u := range f.units {
		m.GPUs = append(m.GPUs, u.GPUInfo)
	}
	m.fleets = append(m.fleets, f)
}

// explain says why there are no figures of an NVIDIA GPU, or no GPU at all. A missing library is normal without a GPU.
func (m *Monitor) explain(err error, cards []card) {
	var l lost
	there := slices.ContainsFunc(cards, func(c card) bool { return c.driver == "nvidia" })
	absent := errors.Is(err, errNoLibrary) || errors.As(err, &l) // container images may have the library without a GPU
	switch {
	case there || !absent:
		m.warn("unreadable-gpu", "can't read NVIDIA GPUs: "+err.Error())
	case len(m.GPUs) == 0:
		m.None = "no GPU found (" + err.Error() + ")"
	}
}

func (m *Monitor) warn(code, text string) {
	m.Warnings = append(m.Warnings, record.Warning{Code: code, Text: text})
}

// Asks reports whether a command line is that of an AMD program that the monitor runs.
func (m *Monitor) Asks(line []string) bool {
	return slices.ContainsFunc(m.fleets, func(f *fleet) bool { return f.path != "" && slices.Contains(line, f.path) })
}

// Sources returns new sources of all devices, for one sampler.
func (m *Monitor) Sources() []sample.Source {
	var out []sample.Source
	for _, f := range m.fleets {
		out = append(out, f.sources()...)
	}
	for _, z := range m.rapl {
		out = append(out, &raplSource{zone: z, Source: record.Source{Role: z.role, Method: RAPL, Every: raplEvery,
			Sees:  "energy of the zone since the first reading, and mean power since the last one",
			Blind: "which process; GPUs; a counter that wraps more than once between two reads"}})
	}
	return out
}

// ProcessSources returns new sources of the GPU memory of a process. start is its start time, as in record.Source.
func (m *Monitor) ProcessSources(pid int, start uint64, role string) []sample.Source {
	var out []sample.Source
	for _, f := range m.fleets {
		if f.process.Method != "" {
			out = append(out, f.sourceOf(pid, start, role))
		}
	}
	if m.drm != nil {
		out = append(out, m.drm.process(pid, start, role))
	}
	return out
}

// Beside returns new GPU sources for the process of a cheap source; none for other sources.
func (m *Monitor) Beside(s sample.Source) []sample.Source {
	if len(m.fleets) == 0 {
		return nil
	}
	d := s.Describe()
	if d.PID == 0 || d.Method != record.MethodStatm && d.Method != proc.Portable {
		return nil
	}
	return m.ProcessSources(d.PID, d.Start, d.Role)
}

// Free returns the free memory of the GPU that has most, and of all GPUs together; ok reports whether it is known.
func (m *Monitor) Free(ctx context.Context) (largest, sum int64, ok bool) {
	for _, f := range m.fleets {
		states, _, _, err := f.states.get(ctx, &f.guard, new(int))
		if err != nil {
			continue
		}
		for i, u := range f.units {
			now := maps.Clone(states[i].figures)
			if u.divided || states[i].err != nil || now.sane() != nil {
				continue // the partitions of a divided GPU have its memory
			}
			free, known := now[memoryFree]
			if !known {
				continue
			}
			largest, sum, ok = max(largest, int64(free)), sum+int64(free), true
		}
	}
	return largest, sum, ok
}

// Close closes the drivers. Sources then have no figures.
func (m *Monitor) Close() {
	for _, f := range m.fleets {
		if f.close != nil {
			f.close()
		}
	}
}

// Memory returns the GPU memory that processes hold together, in bytes by the name of the GPU. What a driver hides is
// not in it. The error is that of a source that cannot be read.
func (m *Monitor) Memory(ctx context.Context, pids []int) (map[string]int64, error) {
	held := map[string]int64{}
	var failed error
	for _, pid := range pids {
		p, err := proc.Look(pid)
		if err != nil {
			continue // it has ended
		}
		for _, s := range m.ProcessSources(pid, p.Start, "") {
			r := record.NewSample()
			if err := s.Read(ctx, &r); err != nil && !errors.Is(err, sample.ErrGone) {
				failed = cmp.Or(failed, err)
			}
			for _, v := range r.Values {
				role, of := strings.CutSuffix(v.Name, ".gpu_memory_bytes")
				i := slices.IndexFunc(m.GPUs, func(g record.GPUInfo) bool { return g.Role == role })
				if of && i >= 0 && v.Value > 0 {
					held[m.GPUs[i].Name] += int64(v.Value)
				}
			}
			if c, ok := s.(io.Closer); ok {
				_ = c.Close() // only read
			}
		}
	}
	return held, failed
}

func roleOf(i int) string { return "gpu" + strconv.Itoa(i) }
