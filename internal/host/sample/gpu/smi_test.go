package gpu

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"llmparity/internal/host/child"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

func TestROCmSMI(t *testing.T) {
	all, err := parseDevices([]byte(
		"WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status\n\n" +
			testdata(t, "rocm_vega10.json")))
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	want := figures{memoryUsed: 17776640, memoryTotal: 17163091968, systemUsed: 25608192, systemTotal: 17163091968,
		watts: 15, celsius: 40, busy: 0}
	if d := all[0]; !maps.Equal(d.figures, want) || d.ID != "0000:04:00.0" || d.Driver != "amdgpu 5.9.25" {
		t.Errorf("%+v", d)
	}
	all, err = parseDevices([]byte(testdata(t, "rocm_7900xt.json")))
	if err != nil || len(all) != 1 || all[0].Name != "Radeon RX 7900 XT" || all[0].figures[memoryUsed] != 27856896 {
		t.Errorf("%+v, %v", all, err)
	}
	uses, err := parseProcesses([]byte(testdata(t, "rocm_pids.json")))
	if err != nil || !slices.Equal(uses, []use{{total, 28389, 2353860608}}) {
		t.Errorf("%+v, %v", uses, err)
	}
}

func TestAMDSMI(t *testing.T) {
	all, err := parseDevices([]byte(testdata(t, "amd_metric.json")))
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	const mib = 1 << 20
	want := figures{memoryUsed: 28123 * mib, memoryFree: 4501 * mib, memoryTotal: 32624 * mib, systemUsed: 91 * mib,
		systemTotal: 64304 * mib, busy: 87, memoryBusy: 41, watts: 246, celsius: 58}
	if d := all[0]; d.index != 0 || !maps.Equal(d.figures, want) {
		t.Errorf("%+v", d)
	}
	all, err = parseDevices([]byte(testdata(t, "amd_power.json")))
	if err != nil || len(all) != 1 || !maps.Equal(all[0].figures, figures{watts: 10}) {
		t.Errorf("%+v, %v", all, err)
	}
	all, err = parseDevices([]byte(testdata(t, "amd_static.json")))
	if err != nil || len(all) != 2 || all[1].Name != "AMD Radeon AI PRO R9700" || all[1].ID != "0000:23:00.0" ||
		all[1].Driver != "amdgpu 6.16.6" {
		t.Errorf("%+v, %v", all, err)
	}
	uses, err := parseProcesses([]byte(testdata(t, "amd_process.json")))
	if err != nil || len(uses) != 8 || uses[0] != (use{0, 1882331, 76000}) ||
		uses[7] != (use{3, 1883505, 29429556000}) {
		t.Errorf("%+v, %v", uses, err)
	}
	uses, err = parseProcesses([]byte(
		`[{"gpu": 0, "process_list": [{"process_info": {"pid": 5, "memory_usage": {"vram_mem": {"value": 3, "unit": "MB"}}}},
		{"process_info": {"pid": "6", "mem_usage": {"value": 2353860608, "unit": "B"}}}, {"process_info": {"pid": 7, "memory_usage": "N/A"}}]},
		{"gpu": 1, "process_list": [{"process_info": {"pid": 5, "memory_usage": {"vram_mem": 9}}}]},
		{"gpu": 2, "process_list": [{"process_info": "No running processes detected"}]}, {"gpu": 3, "process_list": "N/A"}]`))
	if err != nil || !slices.Equal(uses, []use{{0, 5, 3 << 20}, {0, 6, 2353860608}, {0, 7, hidden}, {1, 5, 9}}) {
		t.Errorf("%+v, %v", uses, err)
	}
	for _, text := range []string{"", "no GPU", "{", "[1,", "[\n"} {
		if all, err := parseDevices([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, all)
		}
	}
}

// cards is a program with the given answers.
type cards struct {
	used []float64
	held []use
}

func (c *cards) ask(...string) ([]byte, error) {
	var of []map[string]any
	for i, used := range c.used {
		var list []any
		for _, u := range c.held {
			if u.unit == i {
				list = append(list, map[string]any{"process_info": map[string]any{"pid": u.pid, "mem_usage": u.bytes}})
			}
		}
		of = append(of, map[string]any{"gpu": i, "process_list": list,
			"mem_usage": map[string]any{"total_vram": 32 * gib, "used_vram": used}})
	}
	return json.Marshal(of)
}

// two reads two devices with such a program.
func (c *cards) two(t *testing.T) *tool {
	d := &tool{program: programs[0], ctx: t.Context(), ask: c.ask}
	d.first, _ = d.devices()
	return d
}

// The same amount on several devices may be that of each, or their total, so it is unknown.
func TestSameAmountOnSeveralDevicesIsUnknown(t *testing.T) {
	const unknown = -1.0
	for name, c := range map[string]struct {
		held []use
		sum  float64 // of process 5
	}{
		"the same amount twice": {[]use{{0, 5, 10 * gib}, {1, 5, 10 * gib}}, unknown},
		"different amounts":     {[]use{{0, 5, 1 * gib}, {1, 5, 2 * gib}}, 3 * gib},
		"nothing of the other":  {[]use{{0, 5, 1 * gib}, {1, 5, 0}}, gib},
		"another process":       {[]use{{0, 5, 1 * gib}, {1, 6, 1 * gib}}, gib},
		"one device twice":      {[]use{{0, 5, 4 * gib}, {0, 5, 1 * gib}}, 4 * gib},
		"amounts unknown":       {[]use{{0, 5, hidden}, {1, 5, hidden}}, unknown},
	} {
		m := &Monitor{}
		m.add((&cards{used: []float64{11 * gib, 11 * gib}, held: c.held}).two(t).fleet(0))
		t.Cleanup(m.Close)
		got, err := read(t, running(m.ProcessSources(5, 1, "server")[0]))
		if sum, ok := got["gpu_memory_bytes"]; err != nil || ok != (c.sum != unknown) || ok && sum != c.sum {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.sum)
		}
	}
}

// A GPU that the program no longer reports is lost, and the other is still read; without the program both are lost.
func TestAMDGPUVanishes(t *testing.T) {
	c := &cards{used: []float64{gib, 2 * gib}}
	gone := c.two(t)
	m := &Monitor{}
	m.add(c.two(t).fleet(0))
	t.Cleanup(m.Close)
	all := m.Sources()
	same(t, source(t, all, "gpu1"), map[string]float64{"memory_used_bytes": 2 * gib, "memory_free_bytes": 30 * gib,
		"memory_total_bytes": 32 * gib})
	c.used = c.used[:1]
	if _, err := read(t, source(t, all, "gpu1")); err == nil || !strings.Contains(err.Error(), "fell off the bus") {
		t.Error(err)
	}
	same(t, source(t, all, "gpu0"), map[string]float64{"memory_used_bytes": gib, "memory_free_bytes": 31 * gib,
		"memory_total_bytes": 32 * gib})
	c.used[0] = 33 * gib
	if _, err := read(t, source(t, all, "gpu0")); err == nil || !strings.Contains(err.Error(), "counter overflow") {
		t.Error(err)
	}

	gone.path, gone.ask = filepath.Join(t.TempDir(), "amd-smi"), gone.run
	for _, st := range gone.read() {
		if st.err == nil || !strings.Contains(st.err.Error(), "amd-smi") {
			t.Errorf("%+v", st)
		}
	}
	if l := gone.list(); l.err == nil || len(l.uses) > 0 {
		t.Errorf("%+v", l)
	}
}

// running takes a process for granted.
func running(s sample.Source) sample.Source {
	s.(*processSource).lives = func() bool { return true }
	return s
}

// Close ends a running program without waiting for its answer.
func TestCloseEndsRunningProgram(t *testing.T) {
	kfd := check.Tree(t, t.TempDir(), map[string]string{"class/kfd/kfd/dev": "510:0\n"})
	path, err := filepath.Abs("testdata/rocm_vega10.json")
	check.Err(t, err)
	pids := filepath.Join(t.TempDir(), "pid")
	script := "#!/bin/sh\ncase \"$*\" in *--showpids*) echo $$ >" + pids + ".tmp; mv " + pids + ".tmp " + pids +
		"; sleep 600; exit 1;; esac\nexec cat " + path + "\n"
	program := installed(t, "rocm-smi", script)
	m := with(t, Options{Sys: kfd, Proc: t.TempDir()})
	ended := make(chan error, 1)
	go func() {
		r := record.NewSample()
		ended <- m.ProcessSources(5, 1, "server")[0].Read(context.Background(), &r)
	}()
	var text []byte
	for len(text) == 0 {
		text, _ = os.ReadFile(pids)
		time.Sleep(time.Millisecond)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	check.Err(t, err)
	if !m.Asks([]string{"/bin/sh", program, "--json"}) ||
		m.Asks([]string{"/bin/sh", "rocm-smi"}) {
		t.Error("its command line is not known, or another's is")
	}
	if runtime.GOOS == "linux" && !slices.Contains(child.Tagged(os.Getpid()), pid) {
		t.Errorf("process %d is not tagged as ours", pid)
	}
	m.Close()
	if child.Alive(pid) {
		t.Errorf("process %d still runs", pid)
	}
	if err := <-ended; err == nil {
		t.Error("it has answered")
	}
}

func FuzzSMI(f *testing.F) {
	for _, name := range []string{"rocm_vega10.json", "rocm_7900xt.json", "rocm_pids.json", "amd_metric.json",
		"amd_static.json", "amd_process.json", "amd_power.json"} {
		f.Add([]byte(testdata(f, name)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		devices, _ := parseDevices(text)
		for _, d := range devices {
			for _, v := range d.values() {
				if v.Value < 0 && v.Name != "memory_free_bytes" || math.IsInf(v.Value, 0) {
					t.Errorf("%s = %v", v.Name, v.Value)
				}
			}
		}
		uses, _ := parseProcesses(text)
		for _, u := range uses {
			if u.pid <= 0 || u.bytes < hidden {
				t.Errorf("%+v", u)
			}
		}
	})
}

// standIn is one for a program of AMD's, that prints what the real one was seen to print.
func standIn(t *testing.T, name string, answers map[string]string) {
	t.Helper()
	script := "#!/bin/sh\ncase \"$*\" in\n"
	for args, file := range answers {
		path, err := filepath.Abs(filepath.Join("testdata", file))
		check.Err(t, err)
		script += "*'" + args + "'*) exec cat '" + path + "';;\n"
	}
	script += "*) echo \"unexpected\" >&2; exit 2;;\nesac\n"
	installed(t, name, script)
}

var path = os.Getenv("PATH")

// installed puts a program on PATH, instead of an earlier one, and returns its path.
func installed(t *testing.T, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+path)
	check.Err(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
	return filepath.Join(dir, name)
}

func TestAMDProgramsReplaceSysfs(t *testing.T) {
	sys := check.Tree(t, t.TempDir(), map[string]string{"class/drm/card0/device/uevent": uevent(
		"amdgpu", "1002:7551", "0000:03:00.0"),
		"class/drm/card0/device/drm/renderD128/dev": "226:128\n"})
	standIn(t, "amd-smi", map[string]string{"static": "amd_static.json", "metric": "amd_metric.json",
		"process": "amd_process.json"})
	m := with(t, Options{Sys: sys, Proc: t.TempDir()})
	if g := m.GPUs; len(g) != 1 || g[0].Role != "gpu0" || g[0].Name != "AMD Radeon AI PRO R9700" ||
		g[0].MemoryB != 32624<<20 || g[0].Method != AMDSMI || g[0].Driver != "amdgpu 6.16.6" {
		t.Fatalf("%+v", g)
	}
	got, err := read(t, source(t, m.Sources(), "gpu0"))
	if err != nil || got["memory_used_bytes"] != 28123<<20 || got["power_watts"] != 246 {
		t.Errorf("%v, %v", got, err)
	}
	var methods []string
	for _, s := range m.ProcessSources(1883505, 1, "server") {
		d := s.Describe()
		methods = append(methods, d.Method)
		if d.Method == AMDSMI+"_process" {
			same(t, running(s), map[string]float64{"gpu_memory_bytes": 29429556000,
				"gpu0.gpu_memory_bytes": 29429556000})
		}
	}
	if !slices.Equal(methods, []string{AMDSMI + "_process", Fdinfo}) {
		t.Errorf("%v", methods)
	}

	standIn(t, "rocm-smi", map[string]string{"--showpids": "rocm_pids.json",
		"--showmeminfo all": "rocm_vega10.json"})
	kfd := check.Tree(t, t.TempDir(), map[string]string{"class/kfd/kfd/dev": "510:0\n"})
	m = with(t, Options{Sys: kfd, Proc: t.TempDir()})
	got, err = read(t, source(t, m.Sources(), "gpu0"))
	if err != nil || got["memory_used_bytes"] != 17776640 {
		t.Errorf("%v, %v", got, err)
	}
	same(t, running(m.ProcessSources(28389, 1, "server")[0]),
		map[string]float64{"gpu_memory_bytes": 2353860608, "gpu0.gpu_memory_bytes": 2353860608})

	// Nor is one asked where there is nothing of AMD's.
	if g := with(t, Options{Sys: t.TempDir(), Proc: t.TempDir()}).GPUs; len(g) != 0 {
		t.Errorf("%+v", g)
	}
	// A program that finds no GPU is as none.
	standIn(t, "rocm-smi", nil)
	m = with(t, Options{Sys: kfd, Proc: t.TempDir()})
	if w := m.Warnings; len(m.GPUs) != 0 || len(w) != 0 || !strings.Contains(m.None, "no GPU found") {
		t.Errorf("%+v, %+v", m.GPUs, w)
	}
}
