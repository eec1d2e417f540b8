package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/until"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// all runs every setup and returns the error with priority.
func (r *runner) all(ctx context.Context, one *current) error {
	ctx, cancel := r.within(ctx)
	defer cancel()
	r.announce(one)
	for _, group := range r.together() {
		err := r.group(ctx, group, one)
		if r.w.Err() != nil {
			return nil // Close returns it
		}
		if r.cancelled {
			return err
		}
		r.first = fault.First(r.first, err)
	}
	if err := r.past.failure(r); err != nil {
		r.failed = true
		r.first = fault.First(r.first, err)
	}
	return r.first
}

// within limits the run's time, and ends it when the record can't be written.
func (r *runner) within(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	if limit := time.Duration(r.Plan.RunTimeout); limit > 0 {
		over := &runTimeout{fault.New(fault.Run, "continue with: llmparity run --resume "+r.w.Dir(),
			"the run exceeded its time limit of %s", limit)}
		ctx, cancel = context.WithTimeoutCause(parent, limit, over)
	} else {
		ctx, cancel = context.WithCancel(parent)
	}
	go func() {
		select {
		case <-r.w.Failed():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// runTimeout is the cause of attempts interrupted by the run's time limit.
type runTimeout struct{ error }

func (t *runTimeout) Unwrap() error { return t.error }

// announce announces all cells: completely for a single setup, and as the plan has them for several.
func (r *runner) announce(one *current) {
	var cells []*series
	if one != nil {
		cells = one.cells
	} else {
		for _, s := range r.Setups {
			cells = append(cells, seriesOf(s)...)
		}
	}
	for _, c := range cells {
		if one == nil && c.InputTokens > 0 {
			c.Prompt = "" // it follows with what is still unknown
		}
		if _, announced := r.past.Cell(c.ID); !announced {
			r.w.Cell(c.Cell)
		}
	}
}

// mostTogether limits the setups that are prepared at the same time.
const mostTogether = 64

// together groups setups whose launches alternate: those of one model, in which each launch has its own process.
func (r *runner) together() (groups [][]*plan.Setup) {
	for _, s := range r.Setups {
		last := len(groups) - 1
		alone := s.Plan.Order == plan.Grouped || s.Plan.Isolation != "" && s.Plan.Isolation != plan.OfLaunch
		if last < 0 || alone || len(groups[last]) == mostTogether || groups[last][0].Plan.Model != s.Plan.Model {
			groups = append(groups, nil)
			last++
		}
		groups[last] = append(groups[last], s)
	}
	return groups
}

// group executes setups whose launches alternate: it makes every attempt, and then scores. one is not nil if it was
// built before.
func (r *runner) group(ctx context.Context, group []*plan.Setup, one *current) (first error) {
	last := group[len(group)-1]
	var all []*current
	for _, planned := range group {
		s, err := r.setup(ctx, planned, last.Cells[0].ID+len(last.Cells), one)
		if r.cancelled || r.w.Err() != nil {
			return err
		}
		first = fault.First(first, err)
		if s != nil {
			all = append(all, s)
		}
	}
	err := r.launches(ctx, all)
	r.cancelled, r.failed = ctx.Err() != nil || refuses(err), r.failed || err != nil
	first = fault.First(first, err)
	for _, s := range all {
		if !r.cancelled {
			r.checkLate(ctx, s)
			r.anchor(ctx, s)
			r.scoreAll(ctx, s)
		}
		if s.Answers != nil && r.oneModel { // a record has only one text for each id
			r.w.Pieces(s.Pieces(seen(s.cells)))
		}
		if ctx.Err() != nil {
			r.cancelled = r.cancelled || s.Plan.Quality != "" // else the run is complete nevertheless
			first = cmp.Or(first, context.Cause(ctx))
		}
	}
	return first
}

// setup prepares a setup for its launches. It returns nil if none is to be made. end is the number of the first cell
// after the setup's group.
func (r *runner) setup(ctx context.Context, planned *plan.Setup, end int, s *current) (_ *current, err error) {
	if r.past.over(r, planned) && !r.past.unscored(planned, end) {
		r.pass(planned)
		return nil, nil
	}
	if s == nil {
		if s, err = r.build(ctx, planned); err == nil {
			err = r.ready(ctx, s)
		}
		if err != nil && (ctx.Err() != nil || refuses(err)) {
			r.cancelled = true
			return nil, err
		}
		if err != nil {
			return nil, r.lose(planned, err)
		}
	}
	r.predictAll(ctx, s)
	return s, r.arrange(s)
}

// refuses reports whether err is a refusal.
func refuses(err error) bool {
	_, is := errors.AsType[*refusal](err)
	return is
}

// ready checks and prepares the engines of one setup of several, and announces its cells.
func (r *runner) ready(ctx context.Context, s *current) error {
	err := r.check(ctx, s)
	if err == nil {
		err = r.prepare(ctx, s)
	}
	was, _ := r.past.Cell(s.cells[len(s.cells)-1].ID)
	if err == nil && was.Isolation == "" { // the last one was not announced with everything known about it
		for _, c := range s.cells {
			r.w.Cell(c.Cell)
		}
	}
	return err
}

// patience limits the time for predicting all cells, and for judging one.
const (
	patience = 30 * time.Second
	late     = "prediction took longer than 30s"
)

// predictAll records predictions of the cells' memory, unless the run is interrupted.
func (r *runner) predictAll(ctx context.Context, s *current) {
	if s.Answers == nil {
		return
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, c := range s.cells {
		p := record.Prediction{}
		if soon.Err() == nil {
			p = s.Predict(soon, c.Cell)
		}
		switch {
		case ctx.Err() != nil:
			return
		case soon.Err() != nil:
			p = record.Prediction{Absent: late}
		case p.Absent == "" && len(p.Parts) == 0:
			p.Absent = "no information about its memory"
		}
		p.Cell = c.ID
		c.memory = p
		if _, predicted := r.past.Predictions[c.ID]; !predicted {
			r.w.Predict(p)
		}
	}
}

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

// textFirst moves the text engine's warm-up launches before those of others, which then can score its text.
func textFirst(order []turn, textOf string) {
	n := slices.IndexFunc(order, func(t turn) bool { return !t.warmup })
	if n < 0 {
		n = len(order)
	}
	slices.SortStableFunc(order[:n], func(a, b turn) int {
		first := func(t turn) int {
			if t.Engine == textOf {
				return 0
			}
			return 1
		}
		return first(a) - first(b)
	})
}

// fail records that a cell can't run here.
func (r *runner) fail(c *series, err error) {
	c.gaveUp, c.recorded = err, true
	if !r.optional(c.Engine) {
		r.failed = true
		r.first = fault.First(r.first, c.named(err))
	}
	_, class := outcome(context.Background(), err)
	r.w.Refuse(c.Cell, class, err)
	r.Progress(Event{Kind: Ended, Setup: c.Setup, Cell: c.ID, Cells: r.count.cells, CellsDone: r.count.cellsDone,
		Launch:   r.count.launch + 1,
		Launches: r.count.launches, Engine: c.Engine, Repetition: 1, Repetitions: c.Repetitions,
		Text: string(record.Refused), Err: err})
}

// named adds the engine's name to an error that does not begin with it.
func (c *series) named(err error) error {
	if strings.HasPrefix(err.Error(), c.Engine+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", c.Engine, err)
}

func outcome(parent context.Context, err error) (record.Status, record.Class) {
	var over *runTimeout
	switch {
	case err == nil:
		return record.OK, ""
	case errors.As(context.Cause(parent), &over):
		return record.Interrupted, record.Timeout
	case parent.Err() != nil:
		return record.Interrupted, record.Cancelled
	case refuses(err):
		return record.Interrupted, record.SetUp
	}
	class := engine.ClassOf(err)
	if _, ok := errors.AsType[*fault.Error](err); ok && class == record.Other {
		class = record.SetUp
	}
	return record.Failed, class
}

// lose records that none of a setup's cells can run.
func (r *runner) lose(planned *plan.Setup, err error) error {
	err = fmt.Errorf("setup %d: %w", planned.ID, err)
	for _, c := range seriesOf(planned) {
		if !r.past.failed(r, c.ID) {
			r.fail(c, err)
		}
	}
	r.pass(planned)
	return err
}

// pass counts a setup as done.
func (r *runner) pass(planned *plan.Setup) {
	r.count.cellsDone += len(planned.Cells)
	r.count.launch += launchesOf(planned)
}
