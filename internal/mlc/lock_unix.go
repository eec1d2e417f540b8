//go:build unix && !solaris && !aix

package mlc

import (
	"os"
	"syscall"
)

// lock locks a folder until the file is closed or the process ends; nil where that can't be done. With wait it waits for
// another's lock to go.
func lock(dir string, wait bool) *os.File {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), how); err {
		case nil:
			return f
		case syscall.EINTR:
		default:
			_ = f.Close()
			return nil
		}
	}
}
