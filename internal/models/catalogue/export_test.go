package catalogue

import (
	"context"
	"time"
)

// Impatient retries as often as usual, without waiting.
func (o Options) Impatient() Options { return o.Stalling(10 * time.Second) }

// Stalling is Impatient with a limit on the wait for data.
func (o Options) Stalling(stall time.Duration) Options {
	o.patience = patience{backoff: time.Millisecond, stall: stall}
	return o
}

// Verify compares the hash of every file.
func (p Package) Verify(ctx context.Context) error { return p.verify(ctx, p.Files) }
