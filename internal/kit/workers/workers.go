// Package workers runs numbered jobs in order, up to a given number at a time. After an error it cancels those that
// run, waits for them and starts no others.
package workers

import (
	"context"
	"sync"
)

// Each calls do for the numbers below n, in order, with up to atOnce calls at a time. The first error ends it.
func Each(ctx context.Context, atOnce, n int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan int, n)
	for i := range n {
		todo <- i
	}
	close(todo)
	var workers sync.WaitGroup
	for range min(atOnce, n) {
		workers.Go(func() {
			for i := range todo {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}
