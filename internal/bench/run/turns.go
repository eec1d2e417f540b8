package run

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
)

// Alternate executes plans into a folder each with alternating launches, so that changes of the machine affect all
// alike. While one measures, nothing of the others runs. The first is the baseline run, which the other records name.
// An error before a folder exists ends all. Repetitions that share a session are not separated.
func Alternate(ctx context.Context, sides ...Options) (dirs []string, errs []error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dirs, errs = make([]string, len(sides)), make([]error, len(sides))
	all := &round{}
	for range sides {
		all.turns = append(all.turns, make(chan struct{}, 1))
	}
	all.over = make([]bool, len(sides))
	against := "" // written before the first turn of another side
	reported := sides[0].Progress
	sides[0].Progress = func(e Event) {
		if e.Kind == Recording {
			against = filepath.Base(e.Text)
		}
		if reported != nil {
			reported(e)
		}
	}
	all.turns[0] <- struct{}{}
	var running sync.WaitGroup
	for i := range sides {
		running.Go(func() {
			defer all.end(i)
			if errs[i] = all.wait(ctx, i); errs[i] != nil {
				return
			}
			o := sides[i]
			o.Turn = func(ctx context.Context) error { return all.pass(ctx, i) }
			if i > 0 {
				o.against = against
			}
			if dirs[i], errs[i] = Do(ctx, o); dirs[i] == "" && errs[i] != nil {
				cancel(fmt.Errorf("the other run can't start: %w", errs[i]))
			}
		})
	}
	running.Wait()
	return dirs, errs
}

// round gives turns to runs, one after the other.
type round struct {
	turns []chan struct{} // get a value when it is the run's turn
	mu    sync.Mutex
	over  []bool // the run takes no more turns
}

// wait waits for a run's turn. It returns the error with which another run failed.
func (r *round) wait(ctx context.Context, run int) error {
	select {
	case <-r.turns[run]:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// pass gives the turn to the next run, and returns when it comes back. The context is that of all.
func (r *round) pass(ctx context.Context, run int) error {
	r.next(run)
	return r.wait(ctx, run)
}

// end gives the turn to the next run for good.
func (r *round) end(run int) {
	r.mu.Lock()
	r.over[run] = true
	r.mu.Unlock()
	r.next(run)
}

// next gives the turn to the next run that takes one.
func (r *round) next(run int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := 1; n <= len(r.turns); n++ {
		if to := (run + n) % len(r.turns); !r.over[to] {
			select {
			case r.turns[to] <- struct{}{}:
			default: // after a cancellation, nobody takes it
			}
			return
		}
	}
}
