//go:build unix

package watch

import (
	"os"
	"runtime"
	"syscall"

	"llmparity/internal/record"
)

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
