package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"llmparity/internal/bench/until"
	"llmparity/internal/engine"
	"llmparity/internal/figure"
	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// arrange puts a setup's attempts in order and records refused cells, before any launch.
func (r *runner) arrange(s *current) (first error) {
	s.order = turns(s.Setup, s.cells)
	for _, c := range s.cells {
		c.enough = until.New(s.Plan)
	}
	if s.CheckText == nil && s.Plan.Checks() {
		textFirst(s.order, s.textOf)
	}
	r.past.mark(r, s.cells, s.order)
	for _, c := range s.cells {
		r.past.restore(s, c)
		r.past.restoreChecks(r, s, c)
	}
	for _, t := range s.order {
		t.left++
	}
	for _, c := range s.cells {
		if c.gaveUp == nil || c.recorded {
			continue
		}
		if !r.past.failed(r, c.ID) {
			r.fail(c, c.gaveUp)
		}
		if !r.optional(c.Engine) {
			first, r.failed = fault.First(first, c.named(c.gaveUp)), true
		}
	}
	return first
}

// launches makes every missing attempt of setups, a repetition of each at a time. It returns the error whose exit code
// has priority.
func (r *runner) launches(ctx context.Context, all []*current) (first error) {
	defer r.closeLive()
	for round := 0; slices.ContainsFunc(all, func(s *current) bool { return len(s.order) > 0 }); round++ {
		for _, s := range all {
			for len(s.order) > 0 && (len(all) == 1 || s.order[0].repetition <= round) {
				err := r.next(ctx, s)
				if r.w.Err() != nil || ctx.Err() != nil {
					return context.Cause(ctx) // Close returns the error of a record that can't be written
				}
				if refuses(err) {
					return err
				}
				first = fault.First(first, err)
			}
		}
	}
	return first
}

// next makes a setup's next attempt, unless it is over.
func (r *runner) next(ctx context.Context, s *current) (err error) {
	t := s.order[0]
	s.order = s.order[1:]
	r.count.launch++
	if !t.over() {
		if err = r.await(ctx, t); err == nil {
			err = r.turn(ctx, s, t, s.order)
		}
	}
	if t.left--; t.left == 0 {
		r.count.cellsDone++
	}
	return err
}

// await waits for this run's turn if two runs alternate.
func (r *runner) await(ctx context.Context, t turn) error {
	if r.Turn == nil || r.live != nil && r.live.of == t.session() {
		return nil
	}
	r.closeLive() // nothing of this run may continue meanwhile
	return r.Turn(ctx)
}

// turn makes an attempt, unless the cell's memory does not fit.
func (r *runner) turn(ctx context.Context, s *current, t turn, rest []turn) error {
	refused := r.judgeAll(ctx, s, t)
	if t.over() {
		return refused
	}
	if err := r.coolDown(ctx, s, t); err != nil {
		return err
	}
	begin := time.Now()
	err := r.attempts(ctx, s, t, rest)
	t.spent += time.Since(begin)
	if limit := time.Duration(s.Plan.CellTimeout); limit > 0 && t.spent >= limit && !t.over() && ctx.Err() == nil {
		t.expired = true
		r.w.Warn(record.Warnf("cell-timeout", "cell %d (%s) exceeded its time limit of %s; launches left out: %d "+
			"(`llmparity run --resume` makes them)", t.ID, t.Engine, limit, t.left-1))
	}
	if err != nil && refused == nil {
		refused = fmt.Errorf("%s, launch %d: %w", t.Engine, r.count.launch, err)
	}
	return refused
}

// attempts makes an attempt, and repeats a failed warm-up once, because the cause may be gone.
func (r *runner) attempts(ctx context.Context, s *current, t turn, rest []turn) error {
	for again := false; ; again = true {
		r.say(s, t, Event{Kind: Launched})
		err := r.attempt(ctx, s, t, rest)
		if err == nil {
			t.failedStarts = 0
			return nil
		}
		t.giveUp(err)
		permanent := t.gaveUp != nil || refuses(err) || engine.ClassOf(err) == record.BadOutput
		if again || !t.warmup || permanent || ctx.Err() != nil || r.w.Err() != nil {
			return err
		}
		r.w.Warn(record.Warnf("warmup-repeated", "cell %d (%s): warm-up launch failed and was repeated: %s", t.ID,
			t.Engine, fault.OneLine(err.Error())))
	}
}

// say reports progress of an attempt.
func (r *runner) say(s *current, t turn, e Event) {
	e.Setup, e.Cell, e.Cells, e.CellsDone = s.ID, t.ID, r.count.cells, r.count.cellsDone
	e.Launch, e.Launches = r.count.launch, r.count.launches
	e.Engine, e.Repetition, e.Repetitions, e.Warmup = t.Engine, t.repetition, s.Plan.MostRepetitions(), t.warmup
	e.Memory = r.memory.Load()
	r.Progress(e)
}

// continues reports whether the next attempt continues in a turn's session. stopped says that its cell gets no more.
func continues(t turn, rest []turn, stopped bool) bool {
	if t.session() == nil {
		return false
	}
	for _, next := range rest {
		if !next.over() && !(stopped && next.series == t.series) {
			return next.session() == t.session()
		}
	}
	return false
}

// attempt makes an attempt, in the open session if it is the turn's.
func (r *runner) attempt(ctx context.Context, s *current, t turn, rest []turn) (err error) {
	c := t.series
	if r.live != nil && r.live.of != t.session() {
		r.closeLive() // no attempt continues in it
	}
	a := attempt{runner: r, setup: s, cell: c, turn: t, say: func(e Event) { r.say(s, t, e) }, live: r.live, next: rest}
	r.live = nil // the attempt owns it now, and closes it if it fails
	before := machine.State(ctx)
	b := record.Beginning{Repetition: t.repetition, Warmup: t.warmup, Machine: &before}
	if a.live != nil {
		b.OpenedBy = a.live.opener
	}
	a.rec = r.w.Begin(c.Cell, b)
	r.live, err = a.run(ctx)
	if t.warmup {
		return err
	}
	if err != nil {
		if ctx.Err() == nil {
			r.stop(s, t, c.enough.Exhausted(t.repetition))
		}
		return err
	}
	if c.output == nil {
		c.output = a.output
	}
	if c.enough != nil {
		c.enough.Keep(a.figure, a.stop)
	}
	r.stop(s, t, a.stop)
	return nil
}

// stop records why a cell is not repeated any more, and says so if its interval is not narrow enough; nil: it may be.
func (r *runner) stop(s *current, t turn, stop *record.Stop) {
	if stop == nil {
		return
	}
	stop.Cell = t.ID
	r.w.Stop(*stop)
	if t.enough.Absent() {
		r.w.Warn(record.Warnf("until-ci", "cell %d (%s): %s is not available, so --until-ci has no effect; it "+
			"ran the plan's repetitions", t.ID, t.Engine, stop.Figure))
	}
	if text := stop.Unreached(figure.Title(stop.Figure)); text != "" {
		r.say(s, t, Event{Kind: Judged, Text: text})
	}
}

// coolDown waits between launches, as the plan says.
func (r *runner) coolDown(ctx context.Context, s *current, t turn) error {
	if r.live != nil && r.live.of == t.session() {
		return nil
	}
	if d := time.Duration(s.Plan.CoolDown); d > 0 && r.opened {
		r.closeLive() // an open engine would keep the machine warm
		if err := pause(ctx, d); err != nil {
			return context.Cause(ctx)
		}
	}
	r.opened = true
	return nil
}

// closeLive ends an open session that no attempt continues.
func (r *runner) closeLive() {
	if r.live != nil {
		r.live.sampler.Stop()
		_ = r.live.close() // its attempts are recorded
		r.live = nil
	}
}
