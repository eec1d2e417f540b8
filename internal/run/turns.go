package run

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
)

// Both carries out two plans, each into a folder of its own, whose launches take turns: a launch of the first, one of
// the second, and so on, so that what the machine does meanwhile meets both alike. Nothing of one goes on while the
// other measures. The second's record says that it is held against the first. An error that comes before one of them
// has a folder ends both. A session that several repetitions share is not parted.
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
		cancel(fmt.Errorf("the other side can't be measured: %w", errs[1]))
	}
	b.end()
	<-done
	return dirs, errs
}

// taker is one of two who take turns.
type taker struct {
	mine  chan struct{} // holds a token where it is this one's turn
	other *taker
	over  atomic.Bool
}

func (t *taker) wait(ctx context.Context) error {
	select {
	case <-t.mine:
		return context.Cause(ctx) // of a first one that came to nothing
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pass lets the other have its turn, and comes back when this one's is there again.
func (t *taker) pass(ctx context.Context) error {
	if t.other.over.Load() {
		return nil
	}
	t.other.give()
	return t.wait(ctx)
}

// end is that no turn of this one will come.
func (t *taker) end() {
	t.over.Store(true)
	t.other.give()
}

func (t *taker) give() {
	select {
	case t.mine <- struct{}{}:
	default: // it has it
	}
}
