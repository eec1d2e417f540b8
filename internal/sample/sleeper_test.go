package sample

import (
	"testing"
	"time"
)

// A wake is never lost, whether it comes before a sleep or in it; an hour's sleep would end the test.
func TestWakeEndsASleep(t *testing.T) {
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
			t.Fatal("a sleep that was ended goes on")
		}
	}
	s.sleep(time.Millisecond) // ends by itself
}
