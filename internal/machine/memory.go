package machine

import (
	"github.com/prometheus/procfs"

	"llmparity/internal/record"
)

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
