//go:build unix

package child

import (
	"errors"
	"os"
	"syscall"
)

// available reads what a pipe has, without waiting; 0: nothing. Reads of the file itself fail after its deadline
// without trying.
func available(f *os.File, p []byte) (n int) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) { // an error means that the file is closed
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			n, err = syscall.Read(int(fd), p)
		}
	})
	return max(n, 0)
}
