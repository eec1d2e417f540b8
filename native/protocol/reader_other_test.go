//go:build !linux

package protocol_test

import "os"

// awaitReader does nothing here.
func awaitReader(*os.File) {}
