//go:build linux && cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// machine is NVIDIA's own mock of a DGX A100, with the answers that it does not have.
func machine() *dgxa100.Server {
	s := dgxa100.New()
	for i, d := range s.Devices {
		dev := d.(*dgxa100.Device)
		dev.MemoryInfo = nvml.Memory{Total: 40 * gib, Used: uint64(i+1) * gib, Free: uint64(39-i) * gib}
		dev.GetMemoryInfo_v2Func = answers(nvml.Memory_v2{Total: 40 * gib, Used: uint64(i+1) * gib,
			Free: uint64(38-i) * gib, Reserved: gib}, nvml.SUCCESS)
		dev.GetUtilizationRatesFunc = answers(nvml.Utilization{Gpu: uint32(10 * i), Memory: 7}, nvml.SUCCESS)
		dev.GetPowerUsageFunc = answers(uint32(51_500), nvml.SUCCESS)
		dev.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 33, nvml.SUCCESS }
		dev.GetTotalEnergyConsumptionFunc = answers(uint64(9_000_000), nvml.SUCCESS)
		dev.GetComputeRunningProcessesFunc = processes()
		dev.GetGraphicsRunningProcessesFunc = processes()
	}
	return s
}

// answers is a function of NVML's that always answers the same.
func answers[T any](v T, ret nvml.Return) func() (T, nvml.Return) {
	return func() (T, nvml.Return) { return v, ret }
}

func processes(p ...nvml.ProcessInfo) func() ([]nvml.ProcessInfo, nvml.Return) {
	return answers(p, nvml.SUCCESS)
}

func holds(pid int, bytes uint64) nvml.ProcessInfo {
	return nvml.ProcessInfo{Pid: uint32(pid), UsedGpuMemory: bytes}
}

func device(s *dgxa100.Server, i int) *dgxa100.Device { return s.Devices[i].(*dgxa100.Device) }

// monitor opens a machine that has this NVML and nothing else.
func monitor(t testing.TB, lib nvml.Interface) *Monitor {
	t.Helper()
	d, err := newNVML(lib)
	return opened(t, Options{Sys: t.TempDir(), Proc: t.TempDir()}, d, err)
}

func fails(t *testing.T, s sample.Source) error {
	t.Helper()
	r := record.NewSample()
	err := s.Read(t.Context(), &r)
	if err == nil || len(r.Values) > 0 {
		t.Fatalf("%s gives %v and %v", s.Describe().Role, r.Values, err)
	}
	return err
}

func TestDevices(t *testing.T) {
	m := monitor(t, machine())
	if len(m.GPUs) != 8 || len(m.Warnings) != 0 {
		t.Fatalf("%d GPUs, %+v", len(m.GPUs), m.Warnings)
	}
	if g := m.GPUs[3]; g.Role != "gpu3" || g.Name != "Mock NVIDIA A100-SXM4-40GB" || g.Driver != "550.54.15" ||
		g.MemoryB != 40*gib || g.ID == "" {
		t.Errorf("%+v", g)
	}
	all := m.Sources()
	if len(all) != 8 {
		t.Fatalf("%d sources, want one a device", len(all))
	}
	same(t, source(t, all, "gpu3"), map[string]float64{
		"memory_used_bytes": 4 * gib, "memory_free_bytes": 35 * gib, "memory_total_bytes": 40 * gib,
		"memory_reserved_bytes":   gib,
		"utilization_gpu_percent": 30, "utilization_memory_percent": 7, "power_watts": 51.5, "temperature_celsius": 33,
		"energy_joules": 0})
}

// A figure is absent if the device lacks its sensor, or the library is too old to have the function.
func TestMissingSensors(t *testing.T) {
	s := machine()
	device(s, 0).GetPowerUsageFunc = answers(uint32(0), nvml.ERROR_NOT_SUPPORTED)
	device(s, 0).GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) {
		return 0, nvml.ERROR_UNKNOWN
	}
	s.LookupSymbolFunc = func(string) error { return errors.New("no such symbol") }
	for i := range s.Devices {
		device(s, i).GetMemoryInfo_v2Func, device(s, i).GetTotalEnergyConsumptionFunc = nil, nil // a call panics
	}
	same(t, source(t, monitor(t, s).Sources(), "gpu0"), map[string]float64{"memory_used_bytes": gib,
		"memory_free_bytes": 39 * gib, "memory_total_bytes": 40 * gib, "utilization_gpu_percent": 0,
		"utilization_memory_percent": 7})
}

const (
	server = 4711
	worker = 4712
	chrome = 4713
)

// process gives the one source of a process that runs.
func process(t testing.TB, m *Monitor, pid int) *processSource {
	t.Helper()
	all := m.ProcessSources(pid, 17, "server")
	if len(all) != 1 {
		t.Fatalf("%d sources of a process", len(all))
	}
	s := all[0].(*processSource)
	s.lives = func() bool { return true }
	return s
}

func TestProcesses(t *testing.T) {
	s := machine()
	// NVML lists a browser's GPU process as compute, graphics or both.
	device(s, 0).GetComputeRunningProcessesFunc = processes(holds(server, 5*gib), holds(chrome, 100))
	device(s, 0).GetGraphicsRunningProcessesFunc = processes(holds(chrome, 300), holds(9, 1))
	device(s, 1).GetComputeRunningProcessesFunc = processes(holds(server, 3*gib), holds(worker, 7*gib))
	device(s, 2).GetGraphicsRunningProcessesFunc = processes(holds(chrome, 50))
	m := monitor(t, s)
	same(t, process(t, m, server),
		map[string]float64{"gpu0.gpu_memory_bytes": 5 * gib, "gpu1.gpu_memory_bytes": 3 * gib,
			"gpu_memory_bytes": 8 * gib})
	same(t, process(t, m, worker), map[string]float64{"gpu1.gpu_memory_bytes": 7 * gib, "gpu_memory_bytes": 7 * gib})
	same(t, process(t, m, chrome), map[string]float64{"gpu0.gpu_memory_bytes": 300, "gpu2.gpu_memory_bytes": 50,
		"gpu_memory_bytes": 350})
}

func TestProcessHasNoFiguresUntilListed(t *testing.T) {
	s := machine()
	m := monitor(t, s)
	src := process(t, m, server)
	same(t, src, map[string]float64{})
	device(s, 4).GetComputeRunningProcessesFunc = processes(holds(server, gib))
	same(t, src, map[string]float64{"gpu4.gpu_memory_bytes": gib, "gpu_memory_bytes": gib})
	device(s, 4).GetComputeRunningProcessesFunc = processes()
	same(t, src, map[string]float64{"gpu4.gpu_memory_bytes": 0, "gpu_memory_bytes": 0})
	src.lives = func() bool { return false }
	if err := fails(t, src); !errors.Is(err, sample.ErrGone) {
		t.Error(err)
	}
}

func TestUnreportedValuesAreAbsent(t *testing.T) {
	s := machine()
	device(s, 0).GetComputeRunningProcessesFunc = processes(holds(server, notReported), holds(chrome, notReported))
	device(s, 0).GetGraphicsRunningProcessesFunc = processes(holds(chrome, 300))
	device(s, 1).GetComputeRunningProcessesFunc = processes(holds(server, gib))
	m := monitor(t, s)
	same(t, process(t, m, server), map[string]float64{"gpu1.gpu_memory_bytes": gib})
	same(t, process(t, m, chrome), map[string]float64{"gpu0.gpu_memory_bytes": 300, "gpu_memory_bytes": 300})
	device(s, 5).GetMemoryInfo_v2Func = answers(nvml.Memory_v2{Total: gib, Used: notReported, Free: notReported},
		nvml.SUCCESS)
	if got := values(t, source(t, m.Sources(), "gpu5")); got["memory_total_bytes"] != gib ||
		got["memory_used_bytes"] != 0 {
		t.Errorf("%v", got)
	}
}

func TestMIG(t *testing.T) {
	s := machine()
	whole := device(s, 1)
	whole.MigMode = nvml.DEVICE_MIG_ENABLE
	whole.GetMemoryInfo_v2Func = answers(nvml.Memory_v2{}, nvml.ERROR_NO_PERMISSION)
	whole.GetComputeRunningProcessesFunc = processes(holds(server, 999)) // its parts' processes once more
	whole.GetMaxMigDeviceCountFunc = answers(7, nvml.SUCCESS)
	whole.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i != 0 && i != 3 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		memory := nvml.Memory{Total: 10 * gib, Used: uint64(i+1) * gib, Free: uint64(9-i) * gib}
		return &mock.Device{ // any other question to it ends the test
			GetNameFunc:       answers(fmt.Sprintf("A100 MIG 2g.10gb %d", i), nvml.SUCCESS),
			GetUUIDFunc:       answers(fmt.Sprintf("MIG-%d", i), nvml.SUCCESS),
			GetMemoryInfoFunc: answers(memory, nvml.SUCCESS),
			GetMemoryInfo_v2Func: answers(nvml.Memory_v2{Total: memory.Total, Used: memory.Used, Free: memory.Free},
				nvml.SUCCESS),
			GetComputeRunningProcessesFunc:  processes(holds(server, uint64(i+1)*gib)),
			GetGraphicsRunningProcessesFunc: answers([]nvml.ProcessInfo(nil), nvml.ERROR_NOT_SUPPORTED),
		}, nvml.SUCCESS
	}
	m := monitor(t, s)
	if g := m.GPUs; len(g) != 10 || g[2].Role != "gpu1.mig0" || g[3].Role != "gpu1.mig3" || g[3].ID != "MIG-3" ||
		g[3].MemoryB != 10*gib {
		t.Fatalf("%+v", g)
	}
	all := m.Sources()
	same(t, source(t, all, "gpu1"), map[string]float64{"utilization_gpu_percent": 10, "utilization_memory_percent": 7,
		"power_watts": 51.5, "temperature_celsius": 33, "energy_joules": 0})
	same(t, source(t, all, "gpu1.mig3"), map[string]float64{"memory_used_bytes": 4 * gib, "memory_free_bytes": 6 * gib,
		"memory_total_bytes": 10 * gib, "memory_reserved_bytes": 0})
	if got := values(t, process(t, m, server)); got["gpu1.mig0.gpu_memory_bytes"] != gib ||
		got["gpu1.mig3.gpu_memory_bytes"] != 4*gib || got["gpu_memory_bytes"] != 5*gib {
		t.Errorf("%v", got)
	}
}

func TestLostGPULeavesOthers(t *testing.T) {
	s := machine()
	device(s, 0).GetComputeRunningProcessesFunc = processes(holds(server, gib))
	device(s, 2).GetComputeRunningProcessesFunc = processes(holds(server, gib))
	m := monitor(t, s)
	all, src := m.Sources(), process(t, m, server)
	values(t, src)
	off := answers([]nvml.ProcessInfo(nil), nvml.ERROR_GPU_IS_LOST)
	device(s, 2).GetMemoryInfo_v2Func = answers(nvml.Memory_v2{}, nvml.ERROR_GPU_IS_LOST)
	device(s, 2).GetComputeRunningProcessesFunc, device(s, 2).GetGraphicsRunningProcessesFunc = off, off
	if err := fails(t, source(t, all, "gpu2")); !strings.Contains(err.Error(), "fell off the bus") {
		t.Error(err)
	}
	values(t, source(t, all, "gpu3"))
	same(t, src, map[string]float64{"gpu0.gpu_memory_bytes": gib}) // and no sum
}

func TestDriverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := machine()
		d, err := newNVML(s)
		m := opened(t, Options{Sys: "/nonexistent", Proc: "/nonexistent"}, d, err)
		all := m.Sources()
		release := make(chan struct{})
		device(s, 5).GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
			<-release
			return nvml.Memory_v2{}, nvml.SUCCESS
		}
		begin := time.Now()
		if err := fails(t, all[0]); !errors.Is(err, errHung) || errors.Is(err, sample.ErrGone) ||
			time.Since(begin) != patience {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		for _, src := range append(all[1:], process(t, m, server)) {
			if err := fails(t, src); !errors.Is(err, sample.ErrGone) || time.Since(begin) != patience {
				t.Errorf("after %v: %v", time.Since(begin), err)
			}
		}
		m.Close() // does not ask it either
		close(release)
	})
}

func TestImpossibleDeviceValues(t *testing.T) {
	s := machine()
	wrapped := answers(nvml.Memory_v2{Total: 40 * gib, Used: math.MaxUint64 - 4095, Free: 40 * gib}, nvml.SUCCESS)
	device(s, 0).GetMemoryInfo_v2Func = wrapped
	energy := uint64(5000)
	device(s, 1).GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return energy, nvml.SUCCESS }
	all := monitor(t, s).Sources()
	if err := fails(t, source(t, all, "gpu0")); !strings.Contains(err.Error(), "counter overflow") {
		t.Error(err)
	}
	for _, step := range []struct {
		counter uint64
		want    float64
	}{{5000, 0}, {7500, 2.5}, {7500, 2.5}} {
		energy = step.counter
		if got := values(t, source(t, all, "gpu1")); got["energy_joules"] != step.want {
			t.Errorf("at %d: %v, want %v", step.counter, got["energy_joules"], step.want)
		}
	}
	energy = 20
	if err := fails(t, source(t, all, "gpu1")); !strings.Contains(err.Error(), "went back from 7.500 to 0.020 J") {
		t.Error(err)
	}
}

// Impossible memory is an error; an impossible load is left out.
func TestImpossibleProcessValues(t *testing.T) {
	s := machine()
	device(s, 0).GetComputeRunningProcessesFunc = processes(holds(server, math.MaxUint64-4095), holds(worker, gib))
	device(s, 0).GetUtilizationRatesFunc = answers(nvml.Utilization{Gpu: math.MaxUint32 - 3, Memory: 100}, nvml.SUCCESS)
	device(s, 1).GetMemoryInfo_v2Func = answers(nvml.Memory_v2{Total: 40 * gib, Used: gib,
		Free: math.MaxUint64 - 4095}, nvml.SUCCESS)
	m := monitor(t, s)
	if err := fails(t, process(t, m, server)); !strings.Contains(err.Error(), "counter overflow") {
		t.Error(err)
	}
	same(t, process(t, m, worker), map[string]float64{"gpu0.gpu_memory_bytes": gib, "gpu_memory_bytes": gib})
	got := values(t, source(t, m.Sources(), "gpu0"))
	if _, ok := got["utilization_gpu_percent"]; ok || got["utilization_memory_percent"] != 100 ||
		got["memory_used_bytes"] != gib {
		t.Errorf("%v", got)
	}
	if err := fails(t, source(t, m.Sources(), "gpu1")); !strings.Contains(err.Error(), "bytes free of") {
		t.Error(err)
	}
}

func TestWithoutPermission(t *testing.T) {
	s := machine()
	for i := range s.Devices {
		denied := answers([]nvml.ProcessInfo(nil), nvml.ERROR_NO_PERMISSION)
		device(s, i).GetComputeRunningProcessesFunc, device(s, i).GetGraphicsRunningProcessesFunc = denied, denied
	}
	m := monitor(t, s)
	if err := fails(t, process(t, m, server)); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	values(t, source(t, m.Sources(), "gpu0"))
}

// A missing GPU is no warning; an unreadable one is.
func TestNoGPUDoesNotWarn(t *testing.T) {
	for name, x := range map[string]struct {
		init nvml.Return
		none string // why there is no GPU
		warn string
	}{
		"no library":    {init: nvml.ERROR_LIBRARY_NOT_FOUND, none: "libnvidia-ml.so.1 not found"},
		"no driver":     {init: nvml.ERROR_DRIVER_NOT_LOADED, none: "driver is not loaded"},
		"no GPU":        {none: "NVML finds no GPU"},
		"no permission": {init: nvml.ERROR_NO_PERMISSION, warn: "ERROR_NO_PERMISSION"},
	} {
		s := machine()
		s.InitFunc = func() nvml.Return { return x.init }
		s.DeviceGetCountFunc = answers(0, nvml.SUCCESS)
		m := monitor(t, s)
		if w := m.Warnings; !strings.Contains(m.None, x.none) || (x.none == "") != (m.None == "") ||
			len(w) > 0 != (x.warn != "") || len(w) > 0 &&
			(w[0].Code != "unreadable-gpu" || !strings.Contains(w[0].Text, x.warn)) {
			t.Errorf("%s: %q, %+v", name, m.None, w)
		}
		if n := len(m.Sources()) + len(m.ProcessSources(1, 1, "server")) + len(m.GPUs); n != 0 {
			t.Errorf("%s: %d sources and GPUs", name, n)
		}
	}
	if none := monitor(t, machine()).None; none != "" {
		t.Errorf("eight GPUs are %q", none)
	}
	// Not a mock: this is what NVML's own loader says where the library is not.
	if _, err := newNVML(nvml.New(nvml.WithLibraryPath("libnvidia-ml-that-is-not-there.so.1"))); !errors.Is(
		err, errNoLibrary) {
		t.Errorf("the real loader: %v", err)
	}
}

// A driver that hangs while it is opened causes a warning.
func TestDriverHangsAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resume := make(chan struct{})
		s := machine()
		s.InitFunc = func() nvml.Return { <-resume; return nvml.ERROR_UNKNOWN }
		open := func() (*fleet, error) { return newNVML(s) }
		begin := time.Now()
		d, err := opening(t.Context(), open)
		if d != nil || !errors.Is(err, errHung) || time.Since(begin) != patience {
			t.Errorf("%v, %v after %s", d, err, time.Since(begin))
		}
		m := opened(t, Options{Sys: "/nonexistent", Proc: "/nonexistent"}, d, err)
		if w := m.Warnings; len(w) != 1 || w[0].Code != "unreadable-gpu" {
			t.Errorf("%+v", w)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := opening(ended, open); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(resume)
	})
}

// An unreadable GPU causes a warning, and its role is not reused.
func TestGPUUnreadableAtStart(t *testing.T) {
	s := machine()
	handle := s.DeviceGetHandleByIndexFunc
	s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 1 {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return handle(i)
	}
	d, err := newNVML(s)
	m := opened(t, Options{Sys: radeon(t), Proc: t.TempDir()}, d, err)
	if w := m.Warnings; len(w) != 1 || w[0].Code != "unreadable-gpu" ||
		!strings.Contains(w[0].Text, "gpu1: the GPU fell off the bus") {
		t.Errorf("%+v", w)
	}
	seen := map[string]bool{}
	for _, g := range m.GPUs {
		if seen[g.Role] {
			t.Errorf("%s is there twice", g.Role)
		}
		seen[g.Role] = true
	}
	if len(seen) != 9 || seen["gpu1"] || !seen["gpu8"] || !seen["gpu9"] {
		t.Errorf("%v", seen)
	}
}
