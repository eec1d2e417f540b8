// Package gpu reads the memory, load, power and temperature of GPUs, and what of their memory single processes hold.
//
// NVIDIA's are read by NVML, AMD's by sysfs and by the DRM's per-client accounts in /proc/PID/fdinfo, or by amd-smi or
// rocm-smi where sysfs does not tell; those of others (Intel, and phones' and boards' GPUs) by fdinfo alone. The energy
// of processors comes from RAPL's counters. Cgo is confined to this package and to Linux: built without it, there is no
// NVML.
//
// A GPU that is not there costs nothing: there are then no sources. No figure is made up: what a driver does not tell
// is absent, and a process that a driver does not list has no figures at all until it is listed, because a container
// may hide it.
//
// It can't see which memory a framework has reserved and not used, nor what a process in another container holds, where
// the driver does not list it.
package gpu

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
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

// The rates of sources, in the order of their cost.
const (
	quickEvery = 250 * time.Millisecond
	fdEvery    = 500 * time.Millisecond
	raplEvery  = time.Second
	toolEvery  = 5 * time.Second
)

// Options say where to look; the zero value is the machine. One with another Sys is another machine, of which NVML
// knows nothing.
type Options struct {
	Sys  string   // in place of /sys
	Proc string   // in place of /proc
	Path []string // folders to find amd-smi and rocm-smi in, in place of PATH
}

// Monitor knows the GPUs of a machine. It may be shared by any number of samplers, one after the other or at once.
type Monitor struct {
	gpus     []record.GPUInfo
	fleets   []*fleet
	drm      *drm // nil: no process has accounts
	rapl     []*zone
	none     string // why there is no GPU
	warnings []record.Warning
}

// Open looks for GPUs. It never fails: what hinders it is among the Warnings.
func Open(ctx context.Context, o Options) *Monitor {
	var nvidia driver
	err := errNoLibrary
	if o.Sys == "" {
		nvidia, err = opening(ctx, openNVML)
	}
	o.Sys, o.Proc = cmp.Or(o.Sys, "/sys"), cmp.Or(o.Proc, "/proc")
	m := &Monitor{}
	m.open(ctx, o, nvidia, err)
	return m
}

// open is Open behind the search for NVIDIA's GPUs.
func (m *Monitor) open(ctx context.Context, o Options, nvidia driver, err error) {
	if nvidia != nil {
		m.add(nvidia)
		if err != nil {
			m.warn("unreadable-gpu", "not every NVIDIA GPU can be asked: "+err.Error()+"; it has no figures")
		}
	}
	cards := findCards(o.Sys)
	if m.drm = newDRM(o, cards, m.next()); m.drm != nil {
		m.add(m.drm)
	}
	if (m.drm == nil || !m.drm.tellsMemory()) && amdIsHere(o.Sys, cards) {
		if tool := openTool(ctx, o, m.next()); tool != nil {
			m.add(tool)
		}
	}
	if nvidia == nil {
		m.explain(err, cards)
	}
	var denied error
	if m.rapl, denied = findZones(o.Sys); denied != nil {
		m.warn("no-cpu-energy", "the energy of the processor may not be read by this user ("+denied.Error()+
			"): its figures are absent")
	}
}

// next is the number of the next role: NVML's have gaps where a GPU can't be asked.
func (m *Monitor) next() int {
	next := 0
	for _, g := range m.gpus {
		if n, err := strconv.Atoi(strings.TrimPrefix(g.Role, "gpu")); err == nil { // a part has more behind it
			next = max(next, n+1)
		}
	}
	return next
}

// add takes a driver's devices.
func (m *Monitor) add(d driver) {
	f := &fleet{driver: d, guard: &guard{patience: d.describe().patience}}
	f.states.read, f.uses.read = d.read, d.list
	for _, u := range d.units() {
		m.gpus = append(m.gpus, u.GPUInfo)
	}
	m.fleets = append(m.fleets, f)
}

// explain says why there are no figures of an NVIDIA GPU that is there, or of any. That its library is missing is as it
// should be where it is not.
func (m *Monitor) explain(err error, cards []card) {
	var l lost
	there := slices.ContainsFunc(cards, func(c card) bool { return c.driver == "nvidia" })
	absent := errors.Is(err, errNoLibrary) || errors.As(err, &l) // the library may come with an image that has no GPU
	switch {
	case there || !absent:
		m.warn("unreadable-gpu", "the NVIDIA driver can't be asked: "+err.Error()+"; its GPUs have no figures")
	case len(m.gpus) == 0:
		m.none = "no GPU was found on this machine (" + err.Error() + ")"
	}
}

func (m *Monitor) warn(code, text string) {
	m.warnings = append(m.warnings, record.Warning{Code: code, Text: text})
}

// GPUs lists the devices, parts of divided ones behind them.
func (m *Monitor) GPUs() []record.GPUInfo { return slices.Clone(m.gpus) }

// Asks tells whether a command line is that of a program of AMD's that is asked: it is a child of ours, as others may
// be.
func (m *Monitor) Asks(line []string) bool {
	for _, f := range m.fleets {
		if t, ok := f.driver.(*tool); ok && slices.Contains(line, t.path) {
			return true
		}
	}
	return false
}

// None says why there is no GPU, which is nothing to warn of; empty where there is one, or one that can't be asked.
func (m *Monitor) None() string { return m.none }

// Warnings say what a reader of a run's figures must know; each is to be told once a run.
func (m *Monitor) Warnings() []record.Warning { return slices.Clone(m.warnings) }

// Sources gives new sources of all devices, for one sampler.
func (m *Monitor) Sources() []sample.Source {
	var out []sample.Source
	for _, f := range m.fleets {
		out = append(out, f.sources()...)
	}
	for _, z := range m.rapl {
		out = append(out, z.source())
	}
	return out
}

// ProcessSources gives new sources of what a process holds of GPUs' memory. start is the process's start time, as in
// record.Source.
func (m *Monitor) ProcessSources(pid int, start uint64, role string) []sample.Source {
	var out []sample.Source
	for _, f := range m.fleets {
		if s := f.process(pid, start, role); s != nil {
			out = append(out, s)
		}
	}
	if m.drm != nil {
		out = append(out, m.drm.process(pid, start, role))
	}
	return out
}

// Beside gives new sources that go with a source of a process; none with any other, and none with a process's second.
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

// Close lets go of the drivers. Sources give no figures any more.
func (m *Monitor) Close() {
	for _, f := range m.fleets {
		f.close()
	}
}

func roleOf(i int) string { return "gpu" + strconv.Itoa(i) }
