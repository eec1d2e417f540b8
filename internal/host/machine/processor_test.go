package machine

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/kit/check"
	"llmparity/internal/record"
)

// tree is a machine with these files. self is process 50.
func tree(t testing.TB, content map[string]string) files {
	t.Helper()
	lines := map[string]string{"proc/self": "-> 50"}
	for name, text := range content {
		lines[strings.Replace(name, "proc/self/", "proc/50/", 1)] = strings.TrimSpace(text) + "\n"
	}
	root := check.Tree(t, t.TempDir(), map[string]string{"proc/50/comm": "llmparity"})
	return at(check.Tree(t, root, lines))
}

// laptop has four cores with two threads each, of one socket, and intel_pstate.
func laptop() map[string]string {
	m := map[string]string{
		"sys/devices/system/cpu/online": "0-7", "sys/devices/system/cpu/smt/control": "on",
		"sys/devices/system/cpu/smt/active": "1",
		"sys/devices/system/node/online":    "0", "sys/devices/system/cpu/intel_pstate/no_turbo": "0",
	}
	for i := range 8 {
		core := i % 4
		cpu := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", i)
		siblings := fmt.Sprintf("%d,%d", core, core+4)
		m[cpu+"topology/core_cpus_list"], m[cpu+"topology/physical_package_id"] = siblings, "0"
		for j, c := range [][4]string{{"1", "Data", "48K", siblings}, {"1", "Instruction", "32K", siblings},
			{"2", "Unified", "1280K", siblings}, {"3", "Unified", "12M", "0-7"}} {
			index := fmt.Sprintf("%scache/index%d/", cpu, j)
			m[index+"level"], m[index+"type"], m[index+"size"], m[index+"shared_cpu_list"] = c[0], c[1], c[2], c[3]
		}
		policy := fmt.Sprintf("sys/devices/system/cpu/cpufreq/policy%d/", i)
		m[policy+"scaling_governor"], m[policy+"scaling_driver"] = "powersave", "intel_pstate"
		m[policy+"cpuinfo_max_freq"], m[policy+"cpuinfo_min_freq"] = "4700000", "400000"
		m[policy+"scaling_cur_freq"] = fmt.Sprint(800000 + 1000*i)
	}
	return m
}

func TestLaptop(t *testing.T) {
	m := laptop()
	got := tree(t, m).processor(parseCPUInfo(""))
	want := &record.Processor{Sockets: 1, Physical: 4, Logical: 8, SMT: "on", NUMANodes: 1, MHz: 807, MinMHz: 400,
		MaxMHz: 4700,
		Driver: "intel_pstate", Turbo: "on", SIMD: []string{},
		Caches: []record.Cache{{Level: 1, Kind: "data", B: 48 << 10, Instances: 4},
			{Level: 1, Kind: "instruction", B: 32 << 10, Instances: 4},
			{Level: 2, Kind: "unified", B: 1280 << 10, Instances: 4},
			{Level: 3, Kind: "unified", B: 12 << 20, Instances: 1}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if g := tree(t, m).governors(tree(t, m).policies()); g != "powersave" {
		t.Errorf("governor %q", g)
	}
	m["sys/devices/system/cpu/smt/active"], m["sys/devices/system/cpu/intel_pstate/no_turbo"] = "0", "1"
	m["sys/devices/system/cpu/cpufreq/policy3/scaling_governor"] = "performance"
	got = tree(t, m).processor(parseCPUInfo("cpu MHz : 3999.5"))
	if got.SMT != "off" || got.Turbo != "off" || got.MHz != 3999.5 {
		t.Errorf("SMT %s, turbo %s, %g MHz", got.SMT, got.Turbo, got.MHz)
	}
	if g := tree(t, m).governors(tree(t, m).policies()); g != "performance, powersave" {
		t.Errorf("governors %q", g)
	}
}

// Two kinds of cores have different caches, and their policies in the folders of CPUs, as on phones and older kernels.
func TestBigAndLittleCores(t *testing.T) {
	m := map[string]string{"sys/devices/system/cpu/smt/control": "notimplemented",
		"sys/devices/system/node/online": "0-1"}
	for i, c := range [][4]string{{"64K", "1800000", "0", "schedutil"}, {"64K", "1800000", "1", "schedutil"},
		{"512K", "2900000", "2", "performance"}} {
		cpu := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", i)
		m[cpu+"cache/index0/level"], m[cpu+"cache/index0/type"], m[cpu+"cache/index0/size"],
			m[cpu+"cache/index0/shared_cpu_list"] = "2", "Unified", c[0], c[2]
		m[cpu+"cpufreq/cpuinfo_max_freq"], m[cpu+"cpufreq/scaling_governor"],
			m[cpu+"topology/thread_siblings_list"] = c[1], c[3], c[2]
		m[cpu+"topology/physical_package_id"] = "0"
		m[cpu+"cpufreq/boost"] = "1"
	}
	got := tree(t, m).processor(parseCPUInfo(captured(t, "phone")))
	want := []record.Cache{{Level: 2, Kind: "unified", B: 512 << 10, Instances: 1},
		{Level: 2, Kind: "unified", B: 64 << 10, Instances: 2}}
	if got.Physical != 3 || got.Logical != 2 || got.SMT != "" || got.NUMANodes != 2 || got.MaxMHz != 2900 ||
		got.MinMHz != 0 || got.Turbo != "on" ||
		!reflect.DeepEqual(got.Caches, want) {
		t.Errorf("%+v", got)
	}
	if g := tree(t, m).governors(tree(t, m).policies()); g != "performance, schedutil" {
		t.Errorf("governors %q", g)
	}
}
