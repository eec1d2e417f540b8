package protocol_test

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// awaitReader waits until everything in a pipe has been read.
func awaitReader(pipe *os.File) {
	for {
		if n, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ); err != nil || n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
