package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/sample"
)

// patience is how long a driver may take to answer: one whose GPU fell off the bus may never do. A program may need
// longer.
const (
	patience     = 3 * time.Second
	toolPatience = 15 * time.Second
)

var errHung = errors.New("the driver does not answer any more")

// guard keeps calls of a driver that hangs from hanging us. It lets one call in at a time.
type guard struct {
	patience time.Duration

	driver sync.Mutex // held while it is asked
	hung   atomic.Bool
}

// within gives what f gives, or gives it up. A driver that has hung once is not asked again: what it was asked then
// still goes on.
func within[T any](ctx context.Context, g *guard, f func() T) (T, error) {
	var none T
	if g.hung.Load() {
		return none, fmt.Errorf("%w: %w", errHung, sample.ErrGone) // it was said
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

// opening opens a driver, or gives it up: one that hangs may do so from the start.
func opening(ctx context.Context, open func() (driver, error)) (driver, error) {
	var failed error
	d, err := within(ctx, &guard{patience: patience}, func() (d driver) {
		d, failed = open()
		return d
	})
	if err != nil { // it may still be opening
		return nil, err
	}
	return d, failed
}

// shared is read once for all sources that are read in one pass, so that their figures are of one moment: each source
// is given a reading once, and the first that comes again has a new one made.
type shared[T any] struct {
	read func() T

	mu         sync.Mutex
	last       T
	number     int // of the last reading
	begin, end time.Time
}

// stale is the age at which a reading is of no use to a source that has not had it.
const stale = 50 * time.Millisecond

// get gives a reading that the caller has not had; had is kept by the caller. Who is given another's reading is not
// charged its time.
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
	s.last, s.begin, s.end = v, begin, time.Now()
	s.number++
	*had = s.number
	return v, s.begin, s.end, nil
}
