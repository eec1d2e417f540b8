package catalogue

import (
	"context"
	"time"
)

// Impatient bears trouble as often as usual, but waits for next to nothing.
func (o Options) Impatient() Options { return o.Stalling(10 * time.Second) }

// Stalling is impatient, and waits that long for a byte.
func (o Options) Stalling(stall time.Duration) Options {
	o.patience = patience{backoff: time.Millisecond, stall: stall}
	return o
}

// Verify reads every file and compares it with what was fetched.
func (p Package) Verify(ctx context.Context) error { return p.verify(ctx, p.Files) }
