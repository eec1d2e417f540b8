//go:build !unix || solaris || aix

package whole

import (
	"errors"
	"os"
)

// flock can't lock here.
func flock(*os.File, bool) error { return errors.ErrUnsupported }
