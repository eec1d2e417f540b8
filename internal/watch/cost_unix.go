//go:build unix

package watch

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"llmparity/internal/record"
)

// selfCPU is the CPU time that this program has used, without its children.
func selfCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxRSS gives the highest RSS of a child that was waited for; without one of this program itself; record.Absent where
// it is not known.
func maxRSS(of *os.ProcessState) int64 {
	var u syscall.Rusage
	if of != nil {
		used, ok := of.SysUsage().(*syscall.Rusage)
		if !ok {
			return record.Absent
		}
		u = *used
	} else if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return record.Absent
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
