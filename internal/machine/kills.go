package machine

import (
	"os"
	"strconv"
	"strings"
)

// MemoryKills is how many processes the kernel has ended since the machine started because memory was short; -1 where
// it doesn't tell.
func MemoryKills() int {
	for line := range strings.Lines(files{os.DirFS("/")}.text("proc/vmstat")) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			if n, err := strconv.Atoi(value); err == nil {
				return n
			}
		}
	}
	return -1
}
