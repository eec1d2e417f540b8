package whole

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrBusy says that another process holds the lock.
var ErrBusy = errors.New("locked by another process")

// mode is how something is locked.
type mode int

const (
	exclusive mode = iota // ErrBusy if another process holds the lock
	patient               // exclusive, after waiting for other processes
	shared                // beside others that share it
)

// lock locks an existing file or folder until it is closed or the process ends.
func lock(path string, how mode) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Share locks an existing file or folder beside others that share it, until the result is closed or the process ends.
// It returns nil if that fails.
func Share(path string) *os.File {
	f, _ := lock(path, shared)
	return f
}

// Claim locks an existing file or folder, unless others share or hold it; then it is not free. On systems without file
// locks everything is free.
func Claim(path string) (release func(), free bool) {
	f, err := lock(path, exclusive)
	return func() { _ = f.Close() }, !errors.Is(err, ErrBusy)
}

// poll is the interval between two attempts to lock: a wait inside the kernel could not be cancelled.
const poll = 200 * time.Millisecond

// Lock creates and locks the file at path until unlock or the end of the process. If another process holds the lock, it
// calls waiting once and waits. On systems without file locks it does nothing.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for reported := false; errors.Is(flock(f, exclusive), ErrBusy); {
		if !reported {
			reported = true
			waiting()
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(poll):
		}
	}
	return func() { _ = f.Close() }, nil // which unlocks it
}

// TryLock creates and locks the file at path until it is closed or the process ends. It returns ErrBusy if another
// process holds the lock. On systems without file locks it only opens the file.
func TryLock(path string) (*os.File, error) {
	f, err := openExclusive(path)
	if err != nil {
		return nil, err
	}
	if err := flock(f, exclusive); errors.Is(err, ErrBusy) {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Hold is TryLock, and writes the number of this process into the file, for Holder.
func Hold(path string) (*os.File, error) {
	f, err := TryLock(path)
	if err == nil {
		err = f.Truncate(0)
		_, wrote := fmt.Fprintln(f, os.Getpid())
		err = errors.Join(err, wrote)
	}
	return f, err
}

// Holder returns the process that holds the lock of a file; 0: none.
func Holder(path string) int {
	release, free := Claim(path)
	release()
	text, err := os.ReadFile(path)
	if free || err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}
