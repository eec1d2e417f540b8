//go:build !unix || solaris || aix

package mlc

import "os"

// lock can't lock a folder here.
func lock(string, bool) *os.File { return nil }
