package machine

import (
	"golang.org/x/sys/unix"

	"llmparity/internal/record"
)

// systemCaches returns the sizes from sysctl: on Apple silicon those of the slower cores, without level 3.
func systemCaches() []record.Cache {
	var out []record.Cache
	for _, c := range []struct {
		name, kind string
		level      int
	}{{"hw.l1dcachesize", "data", 1}, {"hw.l1icachesize", "instruction", 1}, {"hw.l2cachesize", "unified", 2},
		{"hw.l3cachesize", "unified", 3}} {
		if b, err := unix.SysctlUint64(c.name); err == nil && b > 0 {
			out = append(out, record.Cache{Level: c.level, Kind: c.kind, B: int64(b)})
		}
	}
	return out
}
