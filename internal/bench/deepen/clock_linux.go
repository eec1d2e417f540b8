package deepen

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the kernel's clock, by which perf stamps samples.
func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it never fails
	return time.Duration(t.Nano())
}
