package run

import (
	"context"
	"fmt"
	"path/filepath"
)

// Both executes two plans into two folders with alternating launches, so that changes of the machine affect both alike.
// While one measures, nothing of the other runs. The second record names the first. An error before a folder exists
// ends both. Repetitions that share a session are not separated.
func Both(ctx context.Context, first, second Options) (dirs [2]string, errs [2]error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a, b := newTaker(), newTaker()
	a.other, b.other = b, a
	first.Turn, second.Turn = a.pass, b.pass
	reported := first.Progress
	first.Progress = func(e Event) {
		if e.Kind == Recording { // before the second run's first turn
			second.against = filepath.Base(e.Text)
		}
		if reported != nil {
			reported(e)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(a.over)
		dirs[0], errs[0] = Do(ctx, first)
		if dirs[0] == "" && errs[0] != nil {
			cancel(errs[0])
		}
	}()
	if err := b.wait(ctx); err != nil {
		<-done
		return dirs, [2]error{errs[0], err}
	}
	dirs[1], errs[1] = Do(ctx, second)
	if dirs[1] == "" && errs[1] != nil {
		cancel(fmt.Errorf("the other run can't start: %w", errs[1]))
	}
	close(b.over)
	<-done
	return dirs, errs
}

// taker is one of two runs that alternate.
type taker struct {
	mine  chan struct{} // gets a value when it is this one's turn
	over  chan struct{} // closed when it takes no more turns
	other *taker
}

func newTaker() *taker { return &taker{mine: make(chan struct{}), over: make(chan struct{})} }

// wait waits for the turn. It returns the error with which the other run failed.
func (t *taker) wait(ctx context.Context) error {
	select {
	case <-t.mine:
	case <-t.other.over:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// pass gives the turn to the other, and returns when it comes back. The context is that of the whole run.
func (t *taker) pass(ctx context.Context) error {
	select {
	case t.other.mine <- struct{}{}: // it waits for its turn, unless it is over
	case <-t.other.over:
	case <-ctx.Done():
	}
	return t.wait(ctx)
}
