package engine

import (
	"fmt"
	"sync"
)

// Turns limits how many generations run at a time. Most is set before the first; 0 means one.
type Turns struct {
	Most int

	mu    sync.Mutex
	going int
}

// Take takes a turn or returns ErrBusy. free returns the turn; calling it again has no effect.
func (t *Turns) Take() (free func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if most := max(1, t.Most); t.going >= most {
		if most > 1 {
			return nil, fmt.Errorf("%d generations are running: %w", t.going, ErrBusy)
		}
		return nil, ErrBusy
	}
	t.going++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.going--
	}), nil
}

// Going returns how many generations are running.
func (t *Turns) Going() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.going
}
