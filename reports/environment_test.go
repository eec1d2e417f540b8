package reports_test

import (
	"slices"
	"testing"

	"llmparity/internal/record"
	"llmparity/reports/plain"
)

// desk is a machine with every field known.
func desk() record.Environment {
	none := int64(0)
	return record.Environment{OS: "debian 12.11", Kernel: "6.12.0", Arch: "amd64", CPU: "Example 9", Cores: 4,
		MemoryB: 32 << 30, Governor: "powersave",
		Load1: 0.5, Load5: 0.25, Load15: 0.125, Container: true, ContainerKind: "podman", Virtual: "kvm",
		Display: "wayland", Go: "go1.26.0",
		Processor: &record.Processor{Vendor: "Maker", Microcode: "0x7", Sockets: 1, Physical: 4, Logical: 8, SMT: "on",
			NUMANodes: 1, MHz: 3000, MinMHz: 400,
			MaxMHz: 4700, Driver: "pstate", Turbo: "on", SIMD: []string{"avx2", "f16c"},
			Caches: []record.Cache{{Level: 1, Kind: "data", B: 48 << 10, Instances: 4},
				{Level: 3, Kind: "unified", B: 12 << 20, Instances: 1}}},
		Memory: &record.Memory{AvailableB: 20 << 30, SwapB: 2 << 30, SwapFreeB: 1 << 30, HugePages: "madvise",
			Merged: true, Zswap: true,
			Reclaimers: []record.Reclaimer{{By: record.DAMON, IdleS: 60}, {By: record.DAMON, Some: true},
				{By: record.DAMONReclaim, IdleS: 120, FreeBelow: 0.4},
				{By: record.DAMON, Hidden: true}}},
		Limits: &record.Limits{Version: "v2", CPUs: 1.5, MemoryB: 4 << 30, MemoryUseB: 1 << 30, SwapB: &none},
		Background: &record.Background{Seconds: 0.2, Cores: 0.5, Stolen: 0.1,
			Busiest: []record.BusyProcess{{Name: "cron\x1b[2J<b>", Processes: 1, Cores: 0.3}}},
		GPUs: []record.GPUInfo{{Role: "gpu0", Name: "Example GPU", Driver: "555.1", MemoryB: 24 << 30,
			Method: "nvml"}},
		Disks: []record.Disk{{Role: "results", FreeB: 1 << 30, TotalB: 4 << 30, Filesystem: "xfs"},
			{Role: "cache", FreeB: 1 << 30, TotalB: 4 << 30, Filesystem: "xfs"},
			{Role: "temporary", FreeB: 2 << 30, TotalB: 2 << 30, Filesystem: "tmpfs"}},
		Temperatures: []record.Temperature{{Chip: "coretemp", Celsius: 61.5}}}
}

func TestMachine(t *testing.T) {
	want := [][2]string{
		{"system", "debian 12.11 6.12.0, amd64"}, {"runs in", "a container (podman) on a virtual machine (kvm)"},
		{"CPU", "Example 9, 4 cores"},
		{"cores", "4 physical, 8 logical, sockets: 1, SMT on, NUMA nodes: 1, Maker, microcode 0x7"},
		{"frequency", "400 to 4700 MHz, 3000 MHz when it was read, pstate, turbo on, governor powersave"},
		{"caches", "L1 data 4 × 48 KiB, L3 1 × 12 MiB"}, {"SIMD", "avx2 f16c"},
		{"memory", "32 GiB, 20 GiB available, 2 GiB swap, 1 GiB free, huge pages madvise, merges equal pages (KSM), zswap, " +
			"reclaims idle memory after 60 s (DAMON), reclaims idle memory of some processes (DAMON), " +
			"reclaims idle memory after 120 s while less than 40% is free (damon_reclaim), may reclaim idle memory (DAMON, readable only by root)"},
		{"limits", "1.5 cores, 4 GiB memory, 1 GiB used, 0 GiB swap (cgroup v2)"},
		{"load before the run", "0.500, 0.250 over 5 minutes, 0.125 over 15"},
		{"others before the run", `0.500 of 8 cores busy, watched for 0.200 s, 0.100 used by other guests of the host: cron\x1b[2J<b> 0.300`},
		{"temperature", "coretemp 61.50 °C"}, {"GPUs", "gpu0: Example GPU, 24 GiB, driver 555.1, by nvml"},
		{"display", "wayland"},
		{"disk", "results, cache 1 GiB of 4 GiB free (xfs); temporary 2 GiB of 2 GiB free (tmpfs)"},
		{"built by", "go1.26.0"},
	}
	if got := plain.Machine(desk()); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	// What is not known has no row.
	got := plain.Machine(record.Environment{OS: "linux", Kernel: "6.1", CPU: "Example", Cores: 2, MemoryB: 1 << 30,
		Load1: 0.5, Container: true})
	want = [][2]string{{"system", "linux 6.1"}, {"runs in", "a container"}, {"CPU", "Example, 2 cores"},
		{"memory", "1 GiB"}, {"load before the run", "0.500"},
		{"GPUs", "none detected"}}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
