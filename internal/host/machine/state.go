package machine

import (
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"llmparity/internal/record"
)

// state reads the current state, except for the load.
func (f files) state() (s record.MachineState) {
	info, _ := f.proc.Meminfo() // empty if it can't be read
	s.FreeB, s.AvailableB = known(info.MemFreeBytes), known(info.MemAvailableBytes)
	s.SwapUsedB = max(0, known(info.SwapTotalBytes)-known(info.SwapFreeBytes))
	if p, err := f.proc.PSIStatsForResource("cpu"); err == nil && p.Some != nil {
		s.Pressure = &p.Some.Avg10
	}
	policies := f.policies()
	for i, policy := range policies {
		s.MaxMHz = max(s.MaxMHz, f.mhz(policy, "scaling_max_freq"))
		if i < asked {
			s.MHz = max(s.MHz, f.mhz(policy, "scaling_cur_freq"))
		}
	}
	s.Governor = f.governors(policies)
	s.Throttled = f.throttled()
	return s
}

// throttled counts thermal throttling events; nil if unknown. Shared events count once for each CPU, so only
// differences are meaningful.
func (f files) throttled() *int64 {
	sum, counted := int64(0), false
	for _, dir := range f.all(cpus + "/cpu[0-9]*/thermal_throttle") {
		for _, name := range []string{"core_throttle_count", "package_throttle_count"} {
			if n, ok := f.number(dir, name); ok {
				sum, counted = sum+n, true
			}
		}
	}
	if !counted {
		return nil
	}
	return &sum
}

// memory returns the machine's total memory and details.
func (f files) memory() (total int64, m *record.Memory) {
	info, err := f.proc.Meminfo()
	if err != nil || info == (procfs.Meminfo{}) {
		return 0, nil
	}
	return known(info.MemTotalBytes), &record.Memory{AvailableB: known(info.MemAvailableBytes),
		SwapB: known(info.SwapTotalBytes), SwapFreeB: known(info.SwapFreeBytes),
		HugePages: chosen(f.text("sys/kernel/mm/transparent_hugepage/enabled")), Reclaimers: f.reclaimers(),
		Merged: f.text("sys/kernel/mm/ksm/run") == "1", Zswap: f.text("sys/module/zswap/parameters/enabled") == "Y"}
}

// known returns a size; 0 if it is not reported.
func known(bytes *uint64) int64 {
	if bytes == nil {
		return 0
	}
	return int64(*bytes)
}

// MemoryKills returns how many processes the kernel's OOM killer has ended since boot; -1 if unknown.
func MemoryKills() int {
	for line := range strings.Lines(at("/").text("proc/vmstat")) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			if n, err := strconv.Atoi(value); err == nil {
				return n
			}
		}
	}
	return -1
}
