//go:build unix

package child

import (
	"errors"
	"syscall"
)

// Alive reports whether process pid exists. Zombies count.
func Alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
