//go:build unix

package watch

import (
	"syscall"
	"time"
)

// selfCPU is the CPU time that this program has used, without its children.
func selfCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
