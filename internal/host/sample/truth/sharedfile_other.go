//go:build !linux

package truth

import "os"

// newShared creates a file in a folder that is removed later.
func newShared(dir string) (*os.File, error) { return os.CreateTemp(dir, "shared") }
