package sample

import (
	"time"

	"golang.org/x/sys/unix"
)

// sharedMemory gives the shared memory on the whole machine, in bytes; 0 where it is not known.
func sharedMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Sharedram) * int64(info.Unit)
}

// threadCPU is the time that this thread has computed.
func threadCPU() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
