//go:build unix

package record

import (
	"os"
	"syscall"

	"llmparity/internal/fault"
)

// lock keeps two runs out of one folder. The kernel releases it when the process ends.
func lock(path, do string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fault.New(fault.Unwritable, do, "another run is writing to this folder (%s is locked)", path)
	}
	return f, nil
}
