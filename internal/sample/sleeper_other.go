//go:build !linux

package sample

import "time"

// sleeper lets one thread sleep until a time has passed or somebody wakes it.
type sleeper struct{ woken chan struct{} }

func (s *sleeper) open() { s.woken = make(chan struct{}, 1) }

func (s *sleeper) sleep(d time.Duration) {
	select {
	case <-s.woken:
	case <-time.After(d):
	}
}

// wake ends the sleep, or the next one.
func (s *sleeper) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (s *sleeper) close() {}
