package run

import (
	"context"
	"fmt"
)

// launches makes every attempt of a setup.
func (r *runner) launches(ctx context.Context, s *current) error {
	// What can't be recorded need not be measured to its end.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-r.w.Failed():
			cancel()
		case <-ctx.Done():
		}
	}()
	defer r.closeLive()
	var first error
	order := turns(s.Plan, s.cells)
	for i, t := range order {
		c := t.cell
		r.launch++
		if c.given != nil {
			continue
		}
		say := func(e Event) {
			e.Setup, e.Cell, e.Cells = s.ID, c.ID, len(s.cells)
			e.Launch, e.Launches = r.launch, len(order)
			e.Engine, e.Repetition, e.Repetitions, e.Warmup = c.Engine, t.repetition, s.Plan.Repetitions, t.warmup
			r.Progress(e)
		}
		if err := r.refuse(ctx, s, t, say); err != nil {
			if first == nil {
				first = fmt.Errorf("%s: %w", c.Engine, err)
			}
			continue
		}
		if err := r.judge(ctx, s, c, say); err != nil {
			c.giveUp(err)
			if first == nil {
				first = fmt.Errorf("%s: %w", c.Engine, err)
			}
			continue
		}
		say(Event{Kind: Launched})
		err := r.attempt(ctx, s, t, say, func() bool { return goesOn(t, order[i+1:]) })
		if r.w.Err() != nil {
			return nil // Close tells it
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			c.giveUp(err)
			if first == nil {
				first = fmt.Errorf("%s, launch %d: %w", c.Engine, r.launch, err)
			}
		}
	}
	return first
}

// goesOn tells whether a turn's session is one that the next attempt goes on in.
func goesOn(t turn, rest []turn) bool {
	if t.session() == nil {
		return false
	}
	for _, next := range rest {
		if next.given == nil {
			return next.session() == t.session()
		}
	}
	return false
}

// attempt makes one, in the session that is open, if there is one.
func (r *runner) attempt(ctx context.Context, s *current, t turn, say func(Event), goesOn func() bool) (err error) {
	c := t.cell
	a := attempt{runner: r, setup: s, cell: c, say: say, live: r.live, more: goesOn, kept: t.session() != nil}
	r.live = nil // the attempt's now, which closes it if it fails
	if a.live != nil {
		a.rec = r.w.Rejoin(a.live.opener, c.Cell, t.repetition, load1(ctx))
	} else {
		a.rec = r.w.Begin(c.Cell, t.repetition, t.warmup, load1(ctx))
	}
	r.live, err = a.run(ctx)
	if err == nil && !t.warmup && c.said == nil {
		c.said = a.said
	}
	return err
}

// closeLive ends what is still open: the run ended before the launch's last attempt.
func (r *runner) closeLive() {
	if r.live != nil {
		r.live.sampler.Stop()
		_ = r.live.close() // its attempts are recorded
		r.live = nil
	}
}
