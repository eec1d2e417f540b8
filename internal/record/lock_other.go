//go:build !unix

package record

import "os"

// lock has no lock here that goes with the process; folders are new for every run, which has to do.
func lock(path, _ string) (*os.File, error) { return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644) }
