//go:build !linux

package deepen

import "time"

var start = time.Now()

// monotonic is a clock of our own: there is no perf whose samples it could be compared with.
func monotonic() time.Duration { return time.Since(start) }
