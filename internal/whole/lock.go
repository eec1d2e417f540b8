package whole

import (
	"context"
	"errors"
	"os"
	"time"
)

// errBusy is a lock that another one has.
var errBusy = errors.New("it is locked")

// lock locks a file or a folder that is there until it is closed or the process ends; nil where that can't be done, or,
// without wait, where another one has it.
func lock(path string, wait bool) *os.File {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	if flock(f, wait) != nil {
		_ = f.Close()
		return nil
	}
	return f
}

// look is how often a lock that somebody has is looked at: waiting in the kernel could not be ended.
const look = 200 * time.Millisecond

// Lock locks the file at path, which is made, until it is unlocked or the process ends. Waiting for another's lock, it
// says so once. Where files can't be locked it does nothing: several at once would have to be kept apart by whoever
// starts them.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for reported := false; errors.Is(flock(f, false), errBusy); {
		if !reported {
			reported = true
			waiting()
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(look):
		}
	}
	return func() { _ = f.Close() }, nil // which unlocks it
}
