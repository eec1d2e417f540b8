//go:build !unix || solaris || aix

package whole

import (
	"errors"
	"os"
)

// flock is not supported on this system.
func flock(*os.File, mode) error { return errors.ErrUnsupported }
