//go:build unix && !solaris && !aix

package whole

import (
	"errors"
	"os"
	"syscall"
)

// flock locks an open file or folder until it is closed or the process ends.
func flock(f *os.File, how mode) error {
	flags := [...]int{exclusive: syscall.LOCK_EX | syscall.LOCK_NB, patient: syscall.LOCK_EX,
		shared: syscall.LOCK_SH | syscall.LOCK_NB}
	for {
		switch err := syscall.Flock(int(f.Fd()), flags[how]); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrBusy
		default:
			return err
		}
	}
}
