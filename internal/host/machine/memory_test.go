package machine

import (
	"reflect"
	"testing"

	"llmparity/internal/record"
)

func TestMemory(t *testing.T) {
	m := map[string]string{"proc/meminfo": "MemTotal:       24684084 kB\nMemFree:        16638244 kB\nMemAvailable:   23721844 kB\nCached:          100 kB\n" +
		"SwapTotal:       2097148 kB\nSwapFree:        1048576 kB\nHugePages_Total:       7",
		"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
		"sys/kernel/mm/ksm/run":                      "1", "sys/module/zswap/parameters/enabled": "Y"}
	total, got := tree(t, m).memory()
	want := &record.Memory{AvailableB: 23721844 << 10, SwapB: 2097148 << 10, SwapFreeB: 1 << 30, HugePages: "madvise",
		Merged: true, Zswap: true}
	if total != 24684084<<10 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d %+v", total, got)
	}
	if total, got = tree(t, nil).memory(); total != 0 || got != nil {
		t.Errorf("of none: %d %+v", total, got)
	}
}
