package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/host/sample"
)

// Time limits for answers: a driver whose GPU fell off the bus may never answer.
const (
	patience     = 3 * time.Second
	toolPatience = 15 * time.Second
)

var errHung = errors.New("the driver does not answer")

// guard protects us from drivers that hang. It allows one call at a time.
type guard struct {
	patience time.Duration

	driver sync.Mutex // held during a call
	hung   atomic.Bool
}

// within returns f's result or gives up. A driver that hung once is not called again; its last call continues.
func within[T any](ctx context.Context, g *guard, f func() T) (T, error) {
	var none T
	if g.hung.Load() {
		return none, fmt.Errorf("%w: %w", errHung, sample.ErrGone) // reported before
	}
	done := make(chan T, 1)
	go func() {
		g.driver.Lock()
		defer g.driver.Unlock()
		done <- f()
	}()
	late := time.NewTimer(g.patience)
	defer late.Stop()
	select {
	case v := <-done:
		return v, nil
	case <-ctx.Done():
		return none, ctx.Err()
	case <-late.C:
		g.hung.Store(true)
		return none, fmt.Errorf("%w (waited %s)", errHung, g.patience)
	}
}

// opening opens a driver with a time limit.
func opening(ctx context.Context, open func() (*fleet, error)) (*fleet, error) {
	var failed error
	f, err := within(ctx, &guard{patience: patience}, func() (f *fleet) {
		f, failed = open()
		return f
	})
	if err != nil { // it may still be running
		return nil, err
	}
	return f, failed
}

// shared is a reading shared by all sources of a pass, so that their figures belong together. Each source gets a
// reading once; a source that comes again causes a new one.
type shared[T any] struct {
	read func() T

	mu     sync.Mutex
	last   T
	number int // number of the last reading
	end    time.Time
}

// stale is the age from which a reading is not shared any more.
const stale = 50 * time.Millisecond

// get returns a reading that the caller has not had; the caller keeps had. A shared reading costs the caller nothing.
func (s *shared[T]) get(ctx context.Context, g *guard, had *int) (v T, begin, end time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number > *had && time.Since(s.end) < stale {
		*had = s.number
		return s.last, s.end, s.end, nil
	}
	begin = time.Now()
	if v, err = within(ctx, g, s.read); err != nil {
		return v, begin, time.Now(), err
	}
	s.last, s.end = v, time.Now()
	s.number++
	*had = s.number
	return v, begin, s.end, nil
}
