//go:build !linux

package machine

import (
	"context"

	"github.com/shirou/gopsutil/v3/mem"
)

// Room returns the available memory and where that figure comes from; ok is false if it is unknown.
func Room(ctx context.Context) (free int64, how string, ok bool) {
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil || m.Available == 0 {
		return 0, "", false
	}
	return int64(m.Available), "available, as the system estimates", true
}
