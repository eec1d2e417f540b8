//go:build !linux

package sample

import "time"

// sharedMemory is not known here: shared pages that processes gain are then taken for pages of others.
func sharedMemory() int64 { return 0 }

var started = time.Now()

// threadCPU stands in the clock's time for the time that this thread has computed: it is not known here.
func threadCPU() time.Duration { return time.Since(started) }
