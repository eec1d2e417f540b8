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
	if wait {
		return retried(f, syscall.LOCK_EX)
	}
	return retried(f, syscall.LOCK_EX|syscall.LOCK_NB)
}

// share locks an open file or folder beside others that share it.
func share(f *os.File) error { return retried(f, syscall.LOCK_SH|syscall.LOCK_NB) }

func retried(f *os.File, how int) error {
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
