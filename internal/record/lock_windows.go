package record

import (
	"errors"
	"os"
	"syscall"

	"llmparity/internal/fault"
)

// lock keeps two runs out of one folder: no other process may open the file. The system releases it when the process
// ends.
func lock(path, do string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const shared, sharingViolation = 0, syscall.Errno(32)
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, shared, nil, syscall.OPEN_ALWAYS,
		syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, fault.New(fault.Unwritable, do, "another run is writing to this folder (%s is locked)", path)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}
