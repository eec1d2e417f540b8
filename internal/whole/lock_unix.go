//go:build unix && !solaris && !aix

package whole

import (
	"errors"
	"os"
	"syscall"
)

// flock locks an open file or folder until it is closed or the process ends. Without wait it returns ErrBusy if another
// process holds the lock.
func flock(f *os.File, wait bool) error {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), how); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrBusy
		default:
			return err
		}
	}
}
