package mlc

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two folders.
func exchange(a, b string) error {
	switch err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err {
	case nil:
		return nil
	case unix.EINVAL, unix.ENOSYS: // not supported by the file system or the kernel
		return fmt.Errorf("exchanging folders: %w", errors.ErrUnsupported)
	default:
		return &os.LinkError{Op: "rename", Old: a, New: b, Err: err}
	}
}
