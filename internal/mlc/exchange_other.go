//go:build !linux

package mlc

import "errors"

// exchange can't be done in one step here.
func exchange(string, string) error { return errors.ErrUnsupported }
