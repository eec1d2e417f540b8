//go:build unix && !solaris && !aix

package whole

import (
	"errors"
	"os"
	"syscall"
)

// flock locks an open file or folder until it is closed or the process ends. Another's lock it waits for, or it is
// errBusy; where there are no locks that is another error.
func flock(f *os.File, wait bool) error {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), how); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errBusy
		default:
			return err
		}
	}
}
