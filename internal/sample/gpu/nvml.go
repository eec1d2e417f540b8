//go:build linux && cgo

package gpu

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"llmparity/internal/record"
)

var errNoLibrary = errors.New("libnvidia-ml.so.1 is not there")

// openNVML asks NVIDIA's library; no driver and errNoLibrary on a machine without it.
func openNVML() (driver, error) { return newNVML(nvml.New()) }

// nvmlDriver asks NVML. Where the library is older than a question, which then must not be asked, the answer is absent.
type nvmlDriver struct {
	lib    nvml.Interface
	all    []*nvmlUnit
	v2     bool // tells what the driver itself has reserved apart from what is used
	energy bool
}

// nvmlUnit is a device or a MIG instance.
type nvmlUnit struct {
	unit
	dev   nvml.Device
	lists bool    // processes are listed here
	never [5]bool // the device has no such sensor
}

// The sensors that a device may lack.
const (
	ofLoad = iota
	ofPower
	ofHeat
	ofEnergy
	ofGraphics
)

func newNVML(lib nvml.Interface) (driver, error) {
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
	return d, err
}

// enumerate finds the devices. One that can't be asked for is left out; why, of the first, is the error.
func (d *nvmlDriver) enumerate(mig bool) error {
	n, ret := d.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return explained(ret)
	}
	if n == 0 {
		return lost("NVIDIA's library is there, and knows of no GPU")
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
	u := &nvmlUnit{dev: dev, lists: true}
	u.GPUInfo = record.GPUInfo{Role: role, Vendor: "NVIDIA", Driver: version, Method: NVML}
	u.Name, _ = dev.GetName()
	u.ID, _ = dev.GetUUID()
	if m, ret := dev.GetMemoryInfo(); ret == nvml.SUCCESS {
		u.MemoryB = int64(m.Total)
	}
	return u
}

// addParts finds the instances that a device is divided into. Its processes and its memory are theirs then; power,
// temperature and load stay the whole device's.
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
			continue // indices need not be in use
		}
		part := fmt.Sprintf("mig%d", i)
		u := d.unit(dev, whole.Role+"."+part, whole.Driver)
		u.Part = part
		u.never = [5]bool{ofLoad: true, ofPower: true, ofHeat: true, ofEnergy: true}
		d.all = append(d.all, u)
		whole.divided, whole.lists = true, false
	}
}

func (d *nvmlDriver) units() []unit {
	out := make([]unit, len(d.all))
	for i, u := range d.all {
		out[i] = u.unit
	}
	return out
}

func (d *nvmlDriver) describe() about {
	used := "memory (used includes what the driver reserves)"
	if d.v2 {
		used = "memory (what the driver reserves for itself is apart)"
	}
	return about{method: NVML, process: NVMLProcess, every: quickEvery, patience: patience,
		sees: used + ", share of the last sampling period, 1/6 to 1 s, in which kernels ran or memory was accessed, power, temperature, " +
			"energy since the first reading",
		blind: "which process: that is " + NVMLProcess +
			"; peaks between two reads; a MIG instance's load, power and temperature",
		listsBlind: "memory that is shared with other processes; processes of other containers or, in one, under other pids; clients of MPS; " +
			"peaks between two reads"}
}

func (d *nvmlDriver) read() []state {
	out := make([]state, len(d.all))
	for i, u := range d.all {
		out[i].figures = unknownFigures()
		out[i].err = d.figures(u, &out[i].figures)
	}
	return out
}

func (d *nvmlDriver) figures(u *nvmlUnit, f *figures) error {
	if err := d.memory(u, f); err != nil {
		return err
	}
	if v, ret := ask(u, ofLoad, u.dev.GetUtilizationRates); ret == nvml.SUCCESS {
		f.busy, f.memoryBusy = float64(v.Gpu), float64(v.Memory)
	}
	if v, ret := ask(u, ofPower, u.dev.GetPowerUsage); ret == nvml.SUCCESS {
		f.watts = float64(v) / 1000
	}
	heat := func() (uint32, nvml.Return) { return u.dev.GetTemperature(nvml.TEMPERATURE_GPU) }
	if v, ret := ask(u, ofHeat, heat); ret == nvml.SUCCESS {
		f.celsius = float64(v)
	}
	if d.energy {
		if v, ret := ask(u, ofEnergy, u.dev.GetTotalEnergyConsumption); ret == nvml.SUCCESS {
			f.joules = float64(v) / 1000
		}
	}
	return nil
}

// memory must be had, but for a divided device's, which only an administrator may ask for.
func (d *nvmlDriver) memory(u *nvmlUnit, f *figures) error {
	var ret nvml.Return
	if d.v2 {
		var m nvml.Memory_v2
		if m, ret = u.dev.GetMemoryInfo_v2(); ret == nvml.SUCCESS {
			f.used, f.free, f.total, f.reserved = size(m.Used), size(m.Free), size(m.Total), size(m.Reserved)
		}
	} else {
		var m nvml.Memory
		if m, ret = u.dev.GetMemoryInfo(); ret == nvml.SUCCESS {
			f.used, f.free, f.total = size(m.Used), size(m.Free), size(m.Total)
		}
	}
	if ret == nvml.SUCCESS || u.divided && !fatal(ret) {
		return nil
	}
	return explained(ret)
}

// size of what the driver tells; the largest number there is means that it is not told.
func size(b uint64) float64 {
	if b == notReported {
		return math.NaN()
	}
	return float64(b)
}

// notReported is NVML_VALUE_NOT_AVAILABLE in 64 bits.
const notReported = math.MaxUint64

// ask asks for what a device may not have, and never again once it has said so.
func ask[T any](u *nvmlUnit, sensor int, question func() (T, nvml.Return)) (v T, ret nvml.Return) {
	if u.never[sensor] {
		return v, nvml.ERROR_NOT_SUPPORTED
	}
	v, ret = question()
	u.never[sensor] = ret == nvml.ERROR_NOT_SUPPORTED
	return v, ret
}

// list asks for those that compute and those that draw: a browser's GPU process may be in either list or in both.
func (d *nvmlDriver) list() listing {
	l := listing{failed: make([]bool, len(d.all))}
	var lists, failed int
	var first error
	for i, u := range d.all {
		if !u.lists {
			continue
		}
		lists++
		begin := len(l.uses)
		compute, ret := u.dev.GetComputeRunningProcesses()
		l.take(begin, i, compute)
		if ret == nvml.SUCCESS {
			var graphics []nvml.ProcessInfo
			if graphics, ret = ask(u, ofGraphics, u.dev.GetGraphicsRunningProcesses); ret == nvml.ERROR_NOT_SUPPORTED {
				ret = nvml.SUCCESS // it draws nothing
			}
			l.take(begin, i, graphics)
		}
		if ret != nvml.SUCCESS {
			l.uses, l.failed[i] = l.uses[:begin], true
			failed++
			if first == nil {
				first = explained(ret)
			}
		}
	}
	if failed > 0 && failed == lists {
		l.err = first
	}
	return l
}

// take merges a list into what is known of a unit, which begins at begin: a process that is in two lists is told of
// twice the same.
func (l *listing) take(begin, unit int, infos []nvml.ProcessInfo) {
next:
	for _, p := range infos {
		bytes := int64(hidden)
		if p.UsedGpuMemory != notReported {
			bytes = int64(min(p.UsedGpuMemory, math.MaxInt64))
		}
		for i := begin; i < len(l.uses); i++ {
			if l.uses[i].pid == int(p.Pid) {
				l.uses[i].bytes = max(l.uses[i].bytes, bytes)
				continue next
			}
		}
		l.uses = append(l.uses, use{unit: unit, pid: int(p.Pid), bytes: bytes})
	}
}

func (d *nvmlDriver) close() { _ = d.lib.Shutdown() } // nothing can be lost

// fatal tells what ends a device's figures for good.
func fatal(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_UNINITIALIZED, nvml.ERROR_RESET_REQUIRED,
		nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return true
	}
	return false
}

// explained puts an answer of NVML's into words.
func explained(ret nvml.Return) error {
	name := strings.TrimSpace(ret.Error())
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		return lost("the GPU has fallen off the bus (" + name + ")")
	case nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_UNINITIALIZED:
		return lost("NVIDIA's driver is not loaded, or not any more (" + name + ")")
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return lost("NVIDIA's driver is of another version than its library: restart the machine (" + name + ")")
	case nvml.ERROR_RESET_REQUIRED:
		return lost("the GPU must be reset before it can be used again (" + name + ")")
	case nvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("%w (%s)", fs.ErrPermission, name)
	}
	return errors.New(name)
}
