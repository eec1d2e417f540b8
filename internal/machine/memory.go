package machine

import (
	"strconv"
	"strings"

	"llmparity/internal/record"
)

// memory returns the machine's total memory and details.
func (f files) memory() (total int64, m *record.Memory) {
	info := parseMemInfo(f.text("proc/meminfo"))
	if len(info) == 0 {
		return 0, nil
	}
	available, ok := info["MemAvailable"]
	if !ok { // kernels before 3.14
		available = info["MemFree"] + info["Cached"]
	}
	return info["MemTotal"], &record.Memory{AvailableB: available, SwapB: info["SwapTotal"],
		SwapFreeB: info["SwapFree"],
		HugePages: chosen(f.text("sys/kernel/mm/transparent_hugepage/enabled")), Reclaimers: f.reclaimers(),
		Merged: f.text("sys/kernel/mm/ksm/run") == "1", Zswap: f.text("sys/module/zswap/parameters/enabled") == "Y"}
}

// parseMemInfo parses the sizes in /proc/meminfo, in bytes.
func parseMemInfo(text string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		kib, ok := strings.CutSuffix(strings.TrimSpace(value), " kB")
		if n, err := strconv.ParseUint(strings.TrimSpace(kib), 10, 53); ok && err == nil {
			out[key] = int64(n) << 10
		}
	}
	return out
}
