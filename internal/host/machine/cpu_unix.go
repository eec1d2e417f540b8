//go:build unix

package machine

import (
	"syscall"
	"time"
)

// SelfCPU returns the CPU time of this program, without its children.
func SelfCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
