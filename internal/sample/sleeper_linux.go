package sample

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper lets one goroutine sleep in the kernel until a time has passed or somebody wakes it: it reads a timer of the
// kernel's.
//
// One of Go's timers costs more, since Go wakes a second thread for it. So does a system call that sleeps: it keeps its
// processor, and a thread of Go's looks again and again whether it is to be taken away.
type sleeper struct {
	mu    sync.Mutex
	fd    int
	file  *os.File // fd's; nil where there is none
	woken bool
}

// unwoken is how long it sleeps at most where it can't be woken: there is no descriptor left.
const unwoken = 20 * time.Millisecond

func (s *sleeper) open() {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fd, s.file = fd, os.NewFile(uintptr(fd), "timerfd")
}

func (s *sleeper) sleep(d time.Duration) {
	if !s.set(d) {
		time.Sleep(min(d, unwoken))
		return
	}
	var count [8]byte
	_, _ = s.file.Read(count[:]) // how often the time has passed does not matter
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = false
}

// set says when the sleep ends; false where there is nothing to sleep on.
func (s *sleeper) set(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return false
	}
	if s.woken {
		d = 0
	}
	s.arm(d)
	return true
}

// wake ends the sleep, or the next one.
func (s *sleeper) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = true
	if s.file != nil {
		s.arm(0)
	}
}

// arm is called under the lock.
func (s *sleeper) arm(d time.Duration) {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))} // none at all would never end
	_ = unix.TimerfdSettime(s.fd, 0, &at, nil)                          // the arguments are right
}

func (s *sleeper) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close() // a timer: nothing can be lost
		s.file = nil
	}
}
