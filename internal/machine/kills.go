package machine

import (
	"strconv"
	"strings"
)

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
