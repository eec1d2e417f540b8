//go:build !linux

package machine

import (
	"context"

	"github.com/shirou/gopsutil/v3/mem"
)

// Room is how much memory can be had now, and how that was found out; ok is false where nothing is told.
func Room(ctx context.Context) (free int64, how string, ok bool) {
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil || m.Available == 0 {
		return 0, "", false
	}
	return int64(m.Available), "available, as the system reckons", true
}
