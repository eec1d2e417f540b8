//go:build linux && cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"llmparity/internal/record"
)

var errNoLibrary = errors.New("libnvidia-ml.so.1 not found")

// openNVML opens NVML; errNoLibrary on a machine without it.
func openNVML() (*fleet, error) { return newNVML(nvml.New()) }

// nvmlDriver reads NVML. Functions that an older library lacks must not be called; their figures are absent.
type nvmlDriver struct {
	lib    nvml.Interface
	all    []*nvmlUnit
	v2     bool // reports memory reserved by the driver separately
	energy bool
}

// nvmlUnit is a device or a MIG instance.
type nvmlUnit struct {
	unit
	dev nvml.Device
}

func newNVML(lib nvml.Interface) (*fleet, error) {
	switch ret := lib.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, errNoLibrary
	default:
		return nil, explained(ret)
	}
	d := &nvmlDriver{lib: lib}
	known := func(symbol string) bool { return lib.Extensions().LookupSymbol(symbol) == nil }
	d.v2, d.energy = known("nvmlDeviceGetMemoryInfo_v2"), known("nvmlDeviceGetTotalEnergyConsumption")
	err := d.enumerate(known("nvmlDeviceGetMigMode"))
	if len(d.all) == 0 {
		_ = lib.Shutdown()
		return nil, err
	}
	return d.fleet(), err
}

func (d *nvmlDriver) fleet() *fleet {
	used := "memory (used includes memory reserved by the driver)"
	if d.v2 {
		used = "memory (without memory reserved by the driver)"
	}
	f := &fleet{guard: guard{patience: patience},
		states: shared[[]state]{read: d.read}, uses: shared[listing]{read: d.list},
		device: record.Source{Method: NVML, Every: cheapEvery,
			Sees: used + ", load over the last 1/6 to 1 s, power, temperature, energy since the first reading",
			Blind: "which process (see " + NVMLProcess +
				"); peaks between two reads; load, power and temperature of a MIG instance"},
		process: record.Source{Method: NVMLProcess, Every: cheapEvery,
			Blind: "sharing between processes; processes of other containers or with other pids; clients of MPS; " +
				"peaks between two reads"}}
	for _, u := range d.all {
		f.units = append(f.units, u.unit)
	}
	// A hanging driver is left to the kernel.
	f.close = func() { _, _ = within(context.Background(), &f.guard, d.lib.Shutdown) }
	return f
}

// enumerate finds the devices. It leaves out those that can't be read, and returns the first error.
func (d *nvmlDriver) enumerate(mig bool) error {
	n, ret := d.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return explained(ret)
	}
	if n == 0 {
		return lost("NVML finds no GPU")
	}
	version, _ := d.lib.SystemGetDriverVersion()
	var first error
	for i := range n {
		dev, ret := d.lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			if first == nil {
				first = fmt.Errorf("%s: %w", roleOf(i), explained(ret))
			}
			continue
		}
		u := d.unit(dev, roleOf(i), version)
		d.all = append(d.all, u)
		if mig {
			d.addParts(u)
		}
	}
	return first
}

func (d *nvmlDriver) unit(dev nvml.Device, role, version string) *nvmlUnit {
	u := &nvmlUnit{dev: dev}
	u.GPUInfo = record.GPUInfo{Role: role, Vendor: "NVIDIA", Driver: version, Method: NVML}
	u.Name, _ = dev.GetName()
	u.ID, _ = dev.GetUUID()
	if m, ret := dev.GetMemoryInfo(); ret == nvml.SUCCESS {
		u.MemoryB = int64(m.Total)
	}
	return u
}

// addParts finds the MIG instances of a device. They have its processes and memory; power, temperature and load remain
// the device's.
func (d *nvmlDriver) addParts(whole *nvmlUnit) {
	if mode, _, ret := whole.dev.GetMigMode(); ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return
	}
	n, ret := whole.dev.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return
	}
	for i := range n {
		dev, ret := whole.dev.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // unused index
		}
		part := fmt.Sprintf("mig%d", i)
		u := d.unit(dev, whole.Role+"."+part, whole.Driver)
		u.Part = part
		d.all = append(d.all, u)
		whole.divided = true
	}
}

func (d *nvmlDriver) read() []state {
	out := make([]state, len(d.all))
	for i, u := range d.all {
		out[i].figures = figures{}
		out[i].err = d.figures(u, out[i].figures)
	}
	return out
}

func (d *nvmlDriver) figures(u *nvmlUnit, f figures) error {
	if err := d.memory(u, f); err != nil {
		return err
	}
	if u.Part != "" {
		return nil // the device has the other figures
	}
	if v, ret := u.dev.GetUtilizationRates(); ret == nvml.SUCCESS {
		f[busy], f[memoryBusy] = float64(v.Gpu), float64(v.Memory)
	}
	if v, ret := u.dev.GetPowerUsage(); ret == nvml.SUCCESS {
		f[watts] = float64(v) / 1000
	}
	if v, ret := u.dev.GetTemperature(nvml.TEMPERATURE_GPU); ret == nvml.SUCCESS {
		f[celsius] = float64(v)
	}
	if d.energy {
		if v, ret := u.dev.GetTotalEnergyConsumption(); ret == nvml.SUCCESS {
			f[joules] = float64(v) / 1000
		}
	}
	return nil
}

// memory is required, except for a divided device, whose memory only an administrator may read.
func (d *nvmlDriver) memory(u *nvmlUnit, f figures) error {
	m, ret := nvml.Memory_v2{Reserved: notReported}, nvml.SUCCESS
	if d.v2 {
		m, ret = u.dev.GetMemoryInfo_v2()
	} else {
		var older nvml.Memory
		older, ret = u.dev.GetMemoryInfo()
		m.Used, m.Free, m.Total = older.Used, older.Free, older.Total
	}
	for name, bytes := range map[string]uint64{memoryUsed: m.Used, memoryFree: m.Free, memoryTotal: m.Total,
		memoryReserved: m.Reserved} {
		if ret == nvml.SUCCESS && bytes != notReported {
			f[name] = float64(bytes)
		}
	}
	if ret == nvml.SUCCESS {
		return nil
	}
	err := explained(ret)
	if _, gone := errors.AsType[lost](err); u.divided && !gone {
		return nil
	}
	return err
}

// notReported is NVML_VALUE_NOT_AVAILABLE in 64 bits.
const notReported = math.MaxUint64

// list reads the lists of compute and graphics processes; a browser's GPU process may be in either or both.
func (d *nvmlDriver) list() listing {
	l := listing{failed: make([]bool, len(d.all))}
	one, failed := false, error(nil)
	for i, u := range d.all {
		if u.divided {
			continue // its partitions list processes
		}
		compute, ret := u.dev.GetComputeRunningProcesses()
		graphics, ret2 := u.dev.GetGraphicsRunningProcesses()
		if ret == nvml.SUCCESS && ret2 != nvml.ERROR_NOT_SUPPORTED { // it may do no graphics
			ret = ret2
		}
		if ret != nvml.SUCCESS {
			l.failed[i], failed = true, explained(ret)
			continue
		}
		one = true
		for _, p := range append(compute, graphics...) {
			held := use{unit: i, pid: int(p.Pid), bytes: hidden}
			if p.UsedGpuMemory != notReported {
				held.bytes = int64(min(p.UsedGpuMemory, math.MaxInt64))
			}
			l.add(held)
		}
	}
	if !one {
		l.err = failed
	}
	return l
}

// explained describes an NVML error.
func explained(ret nvml.Return) error {
	name := strings.TrimSpace(ret.Error())
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		return lost("the GPU fell off the bus (" + name + ")")
	case nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_UNINITIALIZED:
		return lost("the NVIDIA driver is not loaded (" + name + ")")
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return lost("the NVIDIA driver and its library have different versions; restart the machine (" + name + ")")
	case nvml.ERROR_RESET_REQUIRED:
		return lost("the GPU must be reset (" + name + ")")
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("%w (%s)", fs.ErrPermission, name)
	}
	return errors.New(name)
}
