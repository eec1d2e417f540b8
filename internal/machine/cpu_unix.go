//go:build unix

package machine

import (
	"syscall"
	"time"
)

// SelfCPU is the CPU time that this program has used, without its children.
func SelfCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
