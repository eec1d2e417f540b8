package protocol

import (
	"time"

	"golang.org/x/sys/unix"
)

// clockName is the clock that Go's monotonic times and an engine's t_ns have in common.
const clockName = "monotonic"

// clock turns readings of CLOCK_MONOTONIC into times of ours. It is one clock: all that may be off is where they were
// put together.
type clock struct {
	at  time.Time
	ns  int64
	off time.Duration
}

func readClock() clock {
	var best clock
	for i := range 5 {
		before := time.Now()
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
			return clock{at: before, off: -1} // there is no Linux without it; nothing is inside
		}
		if off := time.Since(before); i == 0 || off < best.off {
			best = clock{at: before, ns: t.Nano(), off: off}
		}
	}
	return best
}
