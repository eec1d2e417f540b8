package run

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
)

// Both executes two plans into two folders with alternating launches, so that changes of the machine affect both alike.
// While one measures, nothing of the other runs. The second record names the first. An error before a folder exists
// ends both. Repetitions that share a session are not separated.
func Both(ctx context.Context, first, second Options) (dirs [2]string, errs [2]error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a, b := &taker{mine: make(chan struct{}, 1)}, &taker{mine: make(chan struct{}, 1)}
	a.other, b.other = b, a
	first.Turn, second.Turn = a.pass, b.pass
	var folder atomic.Value
	reported := first.Progress
	first.Progress = func(e Event) {
		if e.Kind == Recording {
			folder.Store(filepath.Base(e.Text))
		}
		if reported != nil {
			reported(e)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.end()
		dirs[0], errs[0] = Do(ctx, first)
		if dirs[0] == "" && errs[0] != nil {
			cancel(errs[0])
		}
	}()
	if err := b.wait(ctx); err != nil {
		<-done
		return dirs, [2]error{errs[0], err}
	}
	if name, ok := folder.Load().(string); ok {
		second.against = name
	}
	dirs[1], errs[1] = Do(ctx, second)
	if dirs[1] == "" && errs[1] != nil {
		cancel(fmt.Errorf("the other run can't start: %w", errs[1]))
	}
	b.end()
	<-done
	return dirs, errs
}

// taker is one of two runs that alternate.
type taker struct {
	mine  chan struct{} // holds a token if it is this one's turn
	other *taker
	over  atomic.Bool
}

func (t *taker) wait(ctx context.Context) error {
	select {
	case <-t.mine:
		return context.Cause(ctx) // the first run failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pass gives the turn to the other, and returns when it comes back.
func (t *taker) pass(ctx context.Context) error {
	if t.other.over.Load() {
		return nil
	}
	t.other.give()
	return t.wait(ctx)
}

// end says that this one takes no more turns.
func (t *taker) end() {
	t.over.Store(true)
	t.other.give()
}

func (t *taker) give() {
	select {
	case t.mine <- struct{}{}:
	default: // it already has the turn
	}
}
