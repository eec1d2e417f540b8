//go:build !linux

package sample

import (
	"time"
)

// sleeper lets one goroutine sleep until a time or a wake-up.
type sleeper struct{ woken chan struct{} }

func (s *sleeper) open() { s.woken = make(chan struct{}, 1) }

func (s *sleeper) sleep(d time.Duration) {
	select {
	case <-s.woken:
	case <-time.After(d):
	}
}

// wake ends the current sleep, or the next one.
func (s *sleeper) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (s *sleeper) close() {}

// sharedMemory is unknown here; new shared pages of a process then count as pages of others.
func sharedMemory() int64 { return 0 }

var started = time.Now()

// threadCPU returns wall-clock time, because the CPU time of a thread is unknown here.
func threadCPU() time.Duration { return time.Since(started) }
