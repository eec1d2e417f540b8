package gpu

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

const gib = 1 << 30

func testdata(t testing.TB, name string) string {
	t.Helper()
	text := check.Read(t, filepath.Join("testdata", name))
	return string(text)
}

// opened opens a machine on which the search for NVIDIA GPUs had this result.
func opened(t testing.TB, o Options, nvidia *fleet, err error) *Monitor {
	t.Helper()
	m := &Monitor{}
	m.open(t.Context(), o, nvidia, err)
	t.Cleanup(m.Close)
	return m
}

// with opens a machine without NVML.
func with(t *testing.T, o Options) *Monitor {
	t.Helper()
	return opened(t, o, nil, errNoLibrary)
}

func uevent(driver, id, slot string) string {
	return "DRIVER=" + driver + "\nPCI_CLASS=30000\nPCI_ID=" + id + "\nPCI_SLOT_NAME=" + slot + "\n"
}

// radeon is a machine with an AMD GPU, an Intel GPU for the display, and a card that only displays.
func radeon(t *testing.T) string {
	const one, two = "class/drm/card1/device/", "class/drm/card10/device/"
	return check.Tree(t, t.TempDir(), map[string]string{
		"class/drm/card0/device/uevent": uevent("ast", "1A03:2000", "0000:01:00.0"),
		"class/drm/card1-DP-1/status":   "connected\n",
		one + "uevent":                  uevent("amdgpu", "1002:6861", "0000:08:00.0"),
		one + "drm/renderD128/dev":      "226:128\n",
		one + "mem_info_vram_used":      "17776640\n", one + "mem_info_vram_total": "17163091968\n",
		one + "mem_info_gtt_used": "25608192\n", one + "mem_info_gtt_total": "17163091968\n",
		one + "gpu_busy_percent":            "12\n",
		one + "hwmon/hwmon3/power1_average": "15000000\n", one + "hwmon/hwmon3/power1_input": "99\n",
		one + "hwmon/hwmon3/temp1_input":   "40000\n",
		two + "uevent":                     uevent("xe", "8086:56A0", "0000:03:00.0"),
		two + "drm/renderD129/dev":         "226:129\n",
		two + "hwmon/hwmon5/energy1_input": "1000000\n",
	})
}

func source(t *testing.T, all []sample.Source, role string) sample.Source {
	t.Helper()
	for _, s := range all {
		if s.Describe().Role == role {
			return s
		}
	}
	t.Fatalf("no source has the role %s", role)
	return nil
}

func read(t *testing.T, s sample.Source) (map[string]float64, error) {
	t.Helper()
	r := record.NewSample()
	err := s.Read(t.Context(), &r)
	out := map[string]float64{}
	for _, v := range r.Values {
		if _, twice := out[v.Name]; twice || math.IsNaN(v.Value) {
			t.Errorf("%s = %v, twice or unknown", v.Name, v.Value)
		}
		out[v.Name] = v.Value
	}
	if err == nil && (r.Begin.IsZero() || r.End.Before(r.Begin) || r.OfProcess()) {
		t.Errorf("%s: %+v", s.Describe().Role, r)
	}
	return out, err
}

func values(t *testing.T, s sample.Source) map[string]float64 {
	t.Helper()
	got, err := read(t, s)
	if err != nil {
		t.Fatalf("%s: %v", s.Describe().Role, err)
	}
	return got
}

func same(t *testing.T, s sample.Source, want map[string]float64) {
	t.Helper()
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }
	if got := values(t, s); !maps.EqualFunc(got, want, near) {
		t.Errorf("%s: %v, want %v", s.Describe().Role, got, want)
	}
}

func TestSysfs(t *testing.T) {
	sys := radeon(t)
	m := with(t, Options{Sys: sys, Proc: t.TempDir()})
	gpus := m.GPUs
	if len(gpus) != 2 || len(m.Warnings) != 0 {
		t.Fatalf("%+v, %+v", gpus, m.Warnings)
	}
	if g := gpus[0]; g.Role != "gpu0" || g.Name != "AMD GPU 1002:6861" || g.Driver != "amdgpu" ||
		g.MemoryB != 17163091968 || g.ID != "0000:08:00.0" {
		t.Errorf("%+v", g)
	}
	if g := gpus[1]; g.Role != "gpu1" || g.Vendor != "Intel" || g.Driver != "xe" {
		t.Errorf("%+v", g)
	}
	same(t, source(t, m.Sources(), "gpu0"),
		map[string]float64{"memory_used_bytes": 17776640, "memory_free_bytes": 17163091968 - 17776640,
			"memory_total_bytes": 17163091968, "system_memory_used_bytes": 25608192,
			"system_memory_total_bytes": 17163091968,
			"utilization_gpu_percent":   12, "power_watts": 15, "temperature_celsius": 40})
	intel := source(t, m.Sources(), "gpu1")
	same(t, intel, map[string]float64{"energy_joules": 0})
	check.Tree(t, sys, map[string]string{"class/drm/card10/device/hwmon/hwmon5/energy1_input": "3500000\n"})
	same(t, intel, map[string]float64{"energy_joules": 2.5})
}

func TestSysfsErrors(t *testing.T) {
	for text, want := range map[string]string{"-4096\n": "counter overflow",
		"18446744073709547520\n": "counter overflow",
		"99999999999999\n":       "counter overflow", "\n": "is not a number", "NaN\n": "is not a number"} {
		sys := radeon(t)
		m := with(t, Options{Sys: sys, Proc: t.TempDir()})
		src := source(t, m.Sources(), "gpu0")
		check.Tree(t, sys, map[string]string{"class/drm/card1/device/mem_info_vram_used": text})
		if _, err := read(t, src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	sys := radeon(t)
	m := with(t, Options{Sys: sys, Proc: t.TempDir()})
	src := source(t, m.Sources(), "gpu0")
	check.Err(t, os.RemoveAll(filepath.Join(sys, "class/drm/card1/device")))
	if _, err := read(t, src); err == nil || !strings.Contains(err.Error(), "fell off the bus") {
		t.Error(err)
	}
	same(t, source(t, m.Sources(), "gpu1"), map[string]float64{"energy_joules": 0})
}

func TestAccounts(t *testing.T) {
	for _, c := range []struct {
		file, driver, pci string
		client            uint64
		device, machine   int64
	}{
		{"fdinfo_amdgpu.txt", "amdgpu", "0000:08:00.0", 217, 2068 << 10, 8192 << 10},
		{"fdinfo_xe.txt", "xe", "0000:03:00.0", 3, 23992 << 10, 192 << 10},
		{"fdinfo_i915.txt", "i915", "0000:03:00.0", 42, 5396348 << 10, 312 << 10},
		{"fdinfo_panfrost.txt", "panfrost", "", 14, 36496 << 10, 0},
	} {
		a, err := parseAccount([]byte(testdata(t, c.file)))
		if err != nil || a == nil {
			t.Fatalf("%s: %v %v", c.file, a, err)
		}
		var device, machine int64
		for name, r := range a.regions {
			if ofMachine.MatchString(name) {
				machine += r.size()
			} else {
				device += r.size()
			}
		}
		if a.driver != c.driver || a.pci != c.pci || a.client != c.client || device != c.device ||
			machine != c.machine {
			t.Errorf("%s: %+v, %d of the device, %d of the machine", c.file, a, device, machine)
		}
	}
	// Newer kernels tell the same in old and in new words.
	a, err := parseAccount([]byte("drm-driver: amdgpu\ndrm-client-id: 1\ndrm-memory-vram: 5 KiB\ndrm-total-vram: 9 KiB\ndrm-resident-vram: 4 KiB\n"))
	if err != nil || a.regions["vram"].size() != 4<<10 {
		t.Errorf("%+v %v", a, err)
	}
	for _, text := range []string{"drm-memory-vram: -4 KiB", "drm-total-vram0: 18446744073709551612 KiB",
		"drm-resident-vram: 5 furlongs",
		"drm-client-id: -1", "drm-total-gtt:"} {
		if _, err := parseAccount([]byte("drm-driver: amdgpu\n" + text + "\n")); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// descriptors are those of a process: number, what it is open on, what the kernel says of it.
func descriptors(t *testing.T, proc string, pid int, all ...[3]string) {
	t.Helper()
	dir := strconv.Itoa(pid)
	files := map[string]string{dir + "/fd/0": "-> /dev/null", dir + "/fdinfo/0": "pos:\t0\n"}
	for _, d := range all {
		files[dir+"/fd/"+d[0]] = "-> " + d[1]
		files[dir+"/fdinfo/"+d[0]] = d[2]
	}
	check.Tree(t, proc, files)
}

func TestProcessAccounts(t *testing.T) {
	dir := t.TempDir()
	m := with(t, Options{Sys: radeon(t), Proc: dir})
	descriptors(t, dir, 2217)
	all := m.ProcessSources(2217, 1, "server")
	if len(all) != 1 || all[0].Describe().Method != Fdinfo || all[0].Describe().PID != 2217 {
		t.Fatalf("%d sources", len(all))
	}
	same(t, all[0], map[string]float64{}) // it is no client yet

	amd, xe := testdata(t, "fdinfo_amdgpu.txt"), testdata(t, "fdinfo_xe.txt")
	second := strings.Replace(amd, "drm-client-id:  217", "drm-client-id:  218", 1)
	descriptors(t, dir, 2217, [3]string{"5", "/dev/dri/renderD128", amd}, [3]string{"6", "/dev/dri/renderD128", amd},
		[3]string{"7", "/dev/dri/card1", second}, [3]string{"99", "/dev/dri/renderD129", xe},
		[3]string{"8", "socket:[4711]", amd})
	const radeon, arc = 2 * 2068 << 10, 23992 << 10
	same(t, all[0], map[string]float64{"gpu0.gpu_memory_bytes": radeon, "gpu1.gpu_memory_bytes": arc,
		"gpu_memory_bytes":        radeon + arc,
		"gpu_system_memory_bytes": (2*8192 + 192) << 10})

	for _, fd := range []string{"5", "6", "7", "99"} {
		check.Err(t, errors.Join(os.Remove(filepath.Join(dir, "2217/fd", fd)),
			os.Remove(filepath.Join(dir, "2217/fdinfo", fd))))
	}
	got, err := read(t, all[0])
	if err != nil || got["gpu_memory_bytes"] != 0 || got["gpu_system_memory_bytes"] != 0 || len(got) == 0 {
		t.Errorf("of a client that closed all: %v, %v", got, err)
	}
	descriptors(t, dir, 2217, [3]string{"5", "/dev/dri/renderD128", strings.Replace(amd, "2068 KiB", "-1 KiB", 1)})
	if _, err := read(t, all[0]); err == nil || errors.Is(err, sample.ErrGone) {
		t.Errorf("a negative size: %v", err)
	}
	check.Err(t, os.RemoveAll(filepath.Join(dir, "2217")))
	if _, err := read(t, all[0]); !errors.Is(err, sample.ErrGone) {
		t.Errorf("an ended process: %v", err)
	}
}

// A reused pid is another process.
func TestProcessIdentity(t *testing.T) {
	p, err := proc.Look(os.Getpid())
	check.Err(t, err)
	if !isStill(p.PID, p.Start) || isStill(p.PID, p.Start-1) {
		t.Error("a running process is not recognised, or a reused pid is not noticed")
	}
}

func TestRAPL(t *testing.T) {
	const zone = "class/powercap/intel-rapl:0/"
	counter := func(uj string) map[string]string { return map[string]string{zone + "energy_uj": uj + "\n"} }
	sys := check.Tree(t, t.TempDir(), map[string]string{
		zone + "name": "package-0\n", zone + "max_energy_range_uj": "262143328850\n",
		zone + "energy_uj":                   "262143000000\n",
		"class/powercap/intel-rapl:0:0/name": "core\n", "class/powercap/intel-rapl:0:0/energy_uj": "1\n",
		"class/powercap/intel-rapl:0:1/name": "dram\n", "class/powercap/intel-rapl:0:1/energy_uj": "5\n",
		"class/powercap/intel-rapl:1/name": "psys\n", "class/powercap/intel-rapl:1/energy_uj": "1\n",
		"class/powercap/intel-rapl-mmio:0/name": "package-0\n", "class/powercap/intel-rapl-mmio:0/energy_uj": "1\n",
	})
	m := with(t, Options{Sys: sys, Proc: t.TempDir()})
	all := m.Sources()
	if len(all) != 2 || all[0].Describe().Role != "cpu0" || all[1].Describe().Role != "cpu0.dram" {
		t.Fatalf("%d sources, %+v", len(all), m.Warnings)
	}
	same(t, all[0], map[string]float64{"energy_joules": 0})
	time.Sleep(time.Millisecond)
	check.Tree(t, sys, counter("262143328850"))
	got, err := read(t, all[0])
	if err != nil || math.Abs(got["energy_joules"]-0.32885) > 1e-9 || got["power_watts"] <= 0 ||
		got["power_watts"] > 329 {
		t.Errorf("%v, %v", got, err)
	}
	check.Tree(t, sys, counter("671149")) // behind the highest number comes nought
	if got, err = read(t, all[0]); err != nil || math.Abs(got["energy_joules"]-1.0) > 1e-9 {
		t.Errorf("over the wrap: %v, %v", got, err)
	}
	check.Tree(t, sys, counter("-1"))
	if _, err = read(t, all[0]); err == nil || !strings.Contains(err.Error(), "counter overflow") {
		t.Error(err)
	}

	check.Err(t, os.Remove(filepath.Join(sys, zone, "max_energy_range_uj")))
	check.Tree(t, sys, counter("500"))
	src := with(t, Options{Sys: sys, Proc: t.TempDir()}).Sources()[0]
	same(t, src, map[string]float64{"energy_joules": 0})
	check.Tree(t, sys, counter("400"))
	if _, err = read(t, src); err == nil || !strings.Contains(err.Error(), "went back") {
		t.Error(err)
	}
}

// The display of a virtual machine is not a GPU. An NVIDIA GPU without its library causes a warning.
func TestCardsWithoutFigures(t *testing.T) {
	for driver, id := range map[string]string{"virtio_gpu": "", "virtio-pci": "1AF4:1050", "vgem": "",
		"nvidia": "10DE:2204"} {
		nvidia := driver == "nvidia"
		sys := check.Tree(t, t.TempDir(), map[string]string{"class/drm/card0/device/uevent": uevent(driver, id, ""),
			"class/drm/card0/device/drm/renderD128/dev": "226:128\n"})
		m := with(t, Options{Sys: sys, Proc: t.TempDir()})
		if w := m.Warnings; len(w) > 0 != nvidia || nvidia && w[0].Code != "unreadable-gpu" ||
			(m.None == "") != nvidia || len(m.GPUs)+len(m.Sources())+len(m.ProcessSources(1, 1, "server")) != 0 {
			t.Errorf("%s: %+v, %+v", driver, w, m.GPUs)
		}
	}
}
