//go:build unix && !solaris && !aix

package whole

import (
	"os"
	"syscall"
)

// lock locks a file until it is closed or the process ends; nil where that can't be done, or another one has it.
func lock(path string) *os.File {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return f
		case syscall.EINTR:
		default:
			_ = f.Close()
			return nil
		}
	}
}
