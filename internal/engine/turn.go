package engine

import "sync"

// Turn lets one generation go on at a time. The zero value is free.
type Turn struct{ mu sync.Mutex }

// Take takes the turn, or gives ErrBusy. The function returned gives it back.
func (t *Turn) Take() (free func(), err error) {
	if !t.mu.TryLock() {
		return nil, ErrBusy
	}
	return t.mu.Unlock, nil
}
