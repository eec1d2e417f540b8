package record

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// asSomebodyElse does something as a user who may read what is ours and not write it. Who is not root can't become
// another one, and takes the right to write from themselves.
func asSomebodyElse(t *testing.T, dir string, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		readOnly(t, dir, do)
		return
	}
	const nobody = 65534
	done := make(chan struct{})
	go func() { // a thread of its own, which ends with it
		defer close(done)
		runtime.LockOSThread()
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}
