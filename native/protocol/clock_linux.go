package protocol

import (
	"time"

	"golang.org/x/sys/unix"
)

// clockName is the clock that Go's monotonic times and an engine's t_ns share.
const clockName = "monotonic"

func readClock() clock {
	var best clock
	for i := range 5 {
		before := time.Now()
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it never fails on Linux
		if off := time.Since(before); i == 0 || off < best.off {
			best = clock{at: before, ns: t.Nano(), off: off}
		}
	}
	return best
}
