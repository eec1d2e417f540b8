//go:build unix

package child

import (
	"errors"
	"syscall"
)

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
