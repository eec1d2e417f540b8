//go:build !windows

package whole

import "os"

// openExclusive only opens the file here; see flock.
func openExclusive(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
}
