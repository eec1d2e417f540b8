package sample

import (
	"time"

	"golang.org/x/sys/unix"
)

// sharedMemory returns the shared memory on the machine in bytes; 0 if unknown.
func sharedMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Sharedram) * int64(info.Unit)
}

// threadCPU returns the CPU time of this thread.
func threadCPU() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
