//go:build !linux

package run

import "errors"

var errNoPageCache = errors.New("this system has no way to say what of files lies in memory")

func evict(string) error { return errNoPageCache }

func resident(string) (in, all int, err error) { return 0, 0, errNoPageCache }
