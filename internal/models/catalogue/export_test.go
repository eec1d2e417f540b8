package catalogue

import (
	"context"
	"time"
)

// Impatient retries as often as usual, without waiting.
func (o FetchOptions) Impatient() FetchOptions { return o.Stalling(10 * time.Second) }

// Stalling is Impatient with a limit on the wait for data.
func (o FetchOptions) Stalling(stall time.Duration) FetchOptions {
	o.patience = patience{backoff: time.Millisecond, stall: stall}
	return o
}

// Verify compares the hash of every file.
func (p Package) Verify(ctx context.Context) error { return p.verify(ctx, p.Files) }
