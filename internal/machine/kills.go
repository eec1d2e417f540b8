package machine

import (
	"bytes"
	"os"
	"strconv"
)

// MemoryKills is how many processes the kernel has ended since the machine started because memory was short; -1 where
// it doesn't tell.
func MemoryKills() int {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return -1
	}
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			n, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			if err == nil {
				return n
			}
		}
	}
	return -1
}
