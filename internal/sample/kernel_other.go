//go:build !linux

package sample

import "time"

// sharedMemory is unknown here; new shared pages of a process then count as pages of others.
func sharedMemory() int64 { return 0 }

var started = time.Now()

// threadCPU returns wall-clock time, because the CPU time of a thread is unknown here.
func threadCPU() time.Duration { return time.Since(started) }
