//go:build unix

package watch

import (
	"os"
	"runtime"
	"syscall"

	"llmparity/internal/record"
)

// maxRSS returns the kernel's highest RSS of a command that has ended, or of a process that it waited for;
// record.Absent if it is unknown. A command starts with this program's memory, so a value up to ours says nothing.
func maxRSS(of *os.ProcessState) int64 {
	var ours syscall.Rusage
	theirs, ok := of.SysUsage().(*syscall.Rusage)
	if !ok || syscall.Getrusage(syscall.RUSAGE_SELF, &ours) != nil || theirs.Maxrss <= ours.Maxrss {
		return record.Absent
	}
	if runtime.GOOS == "darwin" {
		return int64(theirs.Maxrss)
	}
	return int64(theirs.Maxrss) << 10
}
