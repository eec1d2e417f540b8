//go:build unix

package child

import (
	"errors"
	"syscall"
)

// Alive tells whether there is a process pid; one that ended and was not reaped counts.
func Alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
