//go:build unix && !solaris && !aix

package catalogue

import (
	"context"
	"os"
	"syscall"
	"time"
)

// look is how often a lock that somebody has is looked at: waiting in the kernel could not be ended.
const look = 200 * time.Millisecond

// lock locks a file until it is unlocked or the process ends. Waiting for another's lock, it says so once.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for told := false; ; {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return func() { _ = f.Close() }, nil // which unlocks it
		case syscall.EINTR:
			continue
		case syscall.EWOULDBLOCK:
		default: // a file system without locks
			return func() { _ = f.Close() }, nil
		}
		if !told {
			told = true
			waiting()
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(look):
		}
	}
}
