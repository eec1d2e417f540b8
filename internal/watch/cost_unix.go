//go:build unix

package watch

import (
	"os"
	"runtime"
	"syscall"

	"llmparity/internal/record"
)

// maxRSS returns the highest RSS of a reaped child, or of this program for nil; record.Absent if unknown.
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
