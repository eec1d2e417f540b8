package engine

import (
	"fmt"
	"sync"
)

// Turns lets so many generations go on at a time. Most is set before the first; 0 is one.
type Turns struct {
	Most int

	mu    sync.Mutex
	going int
}

// Take takes a turn, or gives ErrBusy. The function returned gives it back, once.
func (t *Turns) Take() (free func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if most := max(1, t.Most); t.going >= most {
		if most > 1 {
			return nil, fmt.Errorf("%d generations go on: %w", t.going, ErrBusy)
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

// Going is how many generations go on.
func (t *Turns) Going() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.going
}
