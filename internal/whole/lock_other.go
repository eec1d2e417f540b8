//go:build !unix || solaris || aix

package whole

import (
	"errors"
	"os"
)

// flock is not supported on this system.
func flock(*os.File, bool) error { return errors.ErrUnsupported }

// share is not supported on this system.
func share(*os.File) error { return errors.ErrUnsupported }
