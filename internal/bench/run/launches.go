package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"llmparity/internal/bench/score"
	"llmparity/internal/bench/until"
	"llmparity/internal/engine"
	"llmparity/internal/figure"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// series is the launches of a cell: its engine and its progress.
type series struct {
	record.Cell
	engine       engine.Engine
	gaveUp       error         // why it gets no more launches
	recorded     bool          // that reason is in the record
	spent        time.Duration // time of its attempts in this process
	expired      bool          // its time limit is reached
	failedStarts int           // consecutive launches that did not start
	enough       *until.Rule   // the rule of --until-ci; nil: a fixed number of repetitions
	left         int           // attempts to come
	judged       bool
	ran          bool // an attempt succeeded
	memory       record.Prediction
	likely       []int         // likeliest tokens in its scores
	output       *score.Output // what its first counted launch generated; nil: none, or token ids unknown
}

// turn is a planned attempt.
type turn struct {
	*series
	warmup     bool
	repetition int  // 0 for a warm-up launch
	made       bool // made before the run was resumed
}

// mostFailedStarts is how many consecutive launches may fail to start before their cell is given up.
const mostFailedStarts = 2

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

// over reports that the attempt is not to be made.
func (t turn) over() bool { return t.made || t.series.over() }

// over reports that the cell gets no more attempts.
func (c *series) over() bool { return c.gaveUp != nil || c.expired || c.enough.Stopped() }

// await waits for this run's turn if two runs alternate.
func (r *runner) await(ctx context.Context, t turn) error {
	if r.Turn == nil || r.live != nil && r.live.of == t.session() {
		return nil
	}
	r.closeLive() // nothing of this run may continue meanwhile
	return r.Turn(ctx)
}

// session identifies what shares the turn's launch; nil: it has its own.
func (t turn) session() any {
	switch {
	case t.warmup:
		return nil
	case t.Shared:
		return t.engine
	case t.Reused:
		return t.series
	}
	return nil
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

// judgeAll judges all cells of a launch before it starts, because afterwards free memory no longer tells.
func (r *runner) judgeAll(ctx context.Context, s *current, t turn) (first error) {
	of := []*series{t.series}
	if t.Shared && !t.judged {
		of = s.of(t.engine)
	}
	for _, c := range of {
		say := func(e Event) { r.say(s, turn{series: c, warmup: t.warmup, repetition: t.repetition}, e) }
		if err := r.judge(ctx, s, c, say); err != nil {
			c.giveUp(err)
			if first == nil {
				first = fmt.Errorf("%s: %w", c.Engine, err)
			}
		}
	}
	return first
}

// judge checks before a cell's first launch whether its memory fits. An error refuses the cell.
func (r *runner) judge(ctx context.Context, s *current, c *series, say func(Event)) error {
	if c.judged || s.Answers == nil {
		return nil
	}
	c.judged = true
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	risk := s.Judge(soon, c.memory, r.gpus)
	switch {
	case ctx.Err() != nil:
		return nil
	case soon.Err() != nil:
		risk = record.Risk{Level: record.RiskUnknown, Places: []record.Place{}, Reasons: []string{late}}
	}
	risk.Cell, risk.Refused = c.ID, risk.Level == record.RiskHigh && s.Plan.ChecksOOM()
	r.w.Risk(risk)
	reasons := strings.Join(risk.Reasons, "; ")
	switch {
	case risk.Refused:
		do := "--no-check-oom runs it anyway"
		if len(risk.Recommendations) > 0 {
			do = risk.Recommendations[0] + "; " + do
		}
		err := fault.New(fault.WontFit, do, "prompt %d skipped: it is predicted to run out of memory: %s", c.PromptID, reasons)
		say(Event{Kind: Judged, Text: err.Error(), Err: err})
		return err
	case risk.Level == record.RiskHigh, risk.Level == record.RiskMedium:
		say(Event{Kind: Judged, Text: fmt.Sprintf("predicted: %s: %s", risk.Level.Words(), reasons)})
	}
	return nil
}

// giveUp ends a cell whose error only a person can fix, or whose launches don't start.
func (c *series) giveUp(err error) {
	if engine.ClassOf(err) == record.Start {
		if c.failedStarts++; c.failedStarts < mostFailedStarts {
			return
		}
		c.gaveUp = err
	} else if _, ok := errors.AsType[*fault.Error](err); ok {
		c.gaveUp = err
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

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
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

// live is a session with its sampler. It belongs to one attempt, or passes from one repetition to the next.
type live struct {
	relay   *relay
	sampler *sample.Sampler
	session engine.Session // nil until it is open
	opener  int            // the attempt that opened it
	of      any            // what shares it, from turn.session
}

// close ends the session. Its last reports still reach the attempt's record.
func (l *live) close() error {
	if l.session == nil {
		return nil
	}
	return l.session.Close()
}

// closeLive ends an open session that no attempt continues.
func (r *runner) closeLive() {
	if r.live != nil {
		r.live.sampler.Stop()
		_ = r.live.close() // its attempts are recorded
		r.live = nil
	}
}
