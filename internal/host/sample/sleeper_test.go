package sample

import (
	"testing"
	"time"
)

// A wake-up is never lost, before or during a sleep.
func TestWakeEndsSleep(t *testing.T) {
	var s sleeper
	s.open()
	defer s.close()
	s.wake()
	s.sleep(time.Hour)

	slept := make(chan bool)
	go func() {
		for range 1000 {
			s.sleep(time.Hour)
			slept <- true
		}
	}()
	for range 1000 {
		s.wake()
		select {
		case <-slept:
		case <-time.After(10 * time.Second):
			t.Fatal("still sleeping after a wake-up")
		}
	}
	s.sleep(time.Millisecond) // ends by itself
}
