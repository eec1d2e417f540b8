package sample

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper lets one goroutine sleep in the kernel until a time or a wake-up, by reading a timerfd.
//
// Go's timers cost more, because Go wakes a second thread for them. So does a sleeping system call, because it keeps
// its P and Go's monitor polls it.
type sleeper struct {
	mu    sync.Mutex
	fd    int
	file  *os.File // of fd; nil: none
	woken bool
}

// unwoken is the longest sleep if there is no file descriptor, and so no wake-up.
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
	_, _ = s.file.Read(count[:]) // the number of expirations does not matter
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = false
}

// set sets the end of the sleep; false without a timer.
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

// wake ends the current sleep, or the next one.
func (s *sleeper) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = true
	if s.file != nil {
		s.arm(0)
	}
}

// arm requires the lock.
func (s *sleeper) arm(d time.Duration) {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))} // zero would disarm the timer
	_ = unix.TimerfdSettime(s.fd, 0, &at, nil)                          // the arguments are right
}

func (s *sleeper) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		_ = s.file.Close() // a timer has no data
		s.file = nil
	}
}

// sharedMemory returns the shared memory on the machine in bytes; 0 if unknown.
func sharedMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Sharedram) * int64(info.Unit)
}

// threadCPU returns the CPU time of this thread.
func threadCPU() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
