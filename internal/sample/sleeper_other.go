//go:build !linux

package sample

import "time"

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
