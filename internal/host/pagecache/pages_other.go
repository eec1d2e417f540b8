//go:build !linux

package pagecache

import "errors"

var errNoPageCache = errors.New("this system does not report what is in the page cache")

func evict(string) error { return errNoPageCache }

func resident(string) (in, all int, err error) { return 0, 0, errNoPageCache }
