package sample

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper lets one thread sleep in the kernel until a time has passed or somebody wakes it.
type sleeper struct {
	mu   sync.Mutex // guards the descriptor against being closed while it is written to
	poll []unix.PollFd
	time unix.Timespec
}

// unwoken is how long it sleeps at most where it can't be woken: there is no descriptor left.
const unwoken = 20 * time.Millisecond

func (s *sleeper) open() {
	if fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		s.poll = []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	}
}

func (s *sleeper) sleep(d time.Duration) {
	if s.poll == nil {
		d = min(d, unwoken)
	}
	s.time = unix.NsecToTimespec(int64(d))
	if n, err := unix.Ppoll(s.poll, &s.time, nil); n > 0 && err == nil {
		var count [8]byte
		_, _ = unix.Read(int(s.poll[0].Fd), count[:]) // how often it was woken does not matter
	}
}

// wake ends the sleep, or the next one.
func (s *sleeper) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll != nil {
		_, _ = unix.Write(int(s.poll[0].Fd), []byte{0: 1, 7: 0}) // it counts far enough
	}
}

func (s *sleeper) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll != nil {
		_ = unix.Close(int(s.poll[0].Fd))
		s.poll = nil
	}
}
