package launch

import (
	"errors"
	"sync"

	"llmparity/internal/engine"
)

// Held is the one thing that a session has at a time, such as a server. Close may be called while it is in use.
type Held[T any] struct {
	Name   string // for people
	Closed error  // returned after the session was closed
	Turns  engine.Turns

	mu     sync.Mutex
	what   *T
	closed bool
}

// Free returns why the session cannot have anything more.
func (h *Held[T]) Free() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.free()
}

func (h *Held[T]) free() error {
	switch {
	case h.closed:
		return h.Closed
	case h.what != nil:
		return errors.New(h.Name + " already has a model; unload it first")
	}
	return nil
}

// Start starts what the session is to have. A concurrent Close either prevents it or ends it.
func (h *Held[T]) Start(start func() (*T, error)) (*T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.free(); err != nil {
		return nil, err
	}
	var err error
	h.what, err = start()
	return h.what, err
}

// Now returns what the session has.
func (h *Held[T]) Now() (*T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, h.Closed
	case h.what == nil:
		return nil, errors.New(h.Name + " has no model loaded; load one first")
	}
	return h.what, nil
}

// Use takes a turn and returns what the session has. The caller calls done when it no longer needs either.
func (h *Held[T]) Use() (what *T, done func(), err error) {
	if done, err = h.Turns.Take(); err != nil {
		return nil, nil, err
	}
	if what, err = h.Now(); err != nil {
		done()
	}
	return what, done, err
}

// Drop forgets what the session has, if it is what.
func (h *Held[T]) Drop(what *T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.what == what {
		h.what = nil
	}
}

// Take returns what the session has, and forgets it; nil: nothing.
func (h *Held[T]) Take() *T { return h.take(false) }

// Close is Take, after which the session can have nothing more.
func (h *Held[T]) Close() *T { return h.take(true) }

func (h *Held[T]) take(last bool) *T {
	h.mu.Lock()
	defer h.mu.Unlock()
	what := h.what
	h.what, h.closed = nil, h.closed || last
	return what
}
