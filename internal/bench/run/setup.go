package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// Setup is a resolved setup of the plan with what executes it.
type Setup struct {
	plan.Setup
	Parts
}

// Parts is what executes a setup.
type Parts struct {
	Engines []engine.Engine // in the order of the setup's plan
	Model   models.Model
	// Form returns the model as an engine loads it; nil: Model.
	Form func(engine.Engine) models.Model
	// Expected maps prompts to the tokens that the model certainly generates; it may cover only the first ones. A
	// launch that generates others has failed.
	Expected map[string][]int
	// Reference names the engine, as in records, whose text all engines score; nil: none. It is called after all
	// engines were checked, because some know only then what they can do.
	Reference func() (string, error)
	// CheckText is the text of score checks; nil: what the reference engine generates.
	CheckText *CheckText
	// Anchor computes a text from a position on with the reference implementation, and how far it moves by rounding in
	// each of the arithmetics; nil: it does not compute this model.
	Anchor func(ctx context.Context, ids []int, from int, of [][]rounding.Arithmetic) (*Anchor, error)
	// Quality returns the text that engines score for quality; nil: none.
	Quality func() (*Text, error)
	// Pieces returns the texts of tokens; nil: unknown.
	Pieces func(ids []int) map[int]string
	// Predict predicts a cell's memory, after its engine has prepared; nil: no prediction.
	Predict func(context.Context, record.Cell) record.Prediction
	// Judge reports whether predicted memory fits into free memory and these GPUs; nil: not judged.
	Judge func(context.Context, record.Prediction, *gpu.Monitor) record.Risk
	// Refused returns why a cell can't run here; nil: all can.
	Refused func(record.Cell) error
	IDs     map[string][]int // token ids of prompts that a chat template was rendered for; nil: none
	// Ask returns the prompt and length of a request of a cell's traffic, which only cells with traffic need. In a
	// conversation, Before has all earlier turns.
	Ask func(record.Cell, traffic.Request) engine.Request
}

// Text is a text in windows of the model's tokens.
type Text struct {
	Name, SHA256 string
	Windows      [][]int
}

// Of returns the model as an engine loads it.
func (p Parts) Of(e engine.Engine) models.Model {
	m := p.Model
	if p.Form != nil {
		m = p.Form(e)
	}
	return m
}

// current is the setup that is being executed.
type current struct {
	Setup
	cells     []*cell
	order     []turn // to come
	reference string

	checked checked
}

// build builds a setup's parts and its cells.
func (r *runner) build(ctx context.Context, planned plan.Setup) (_ *current, err error) {
	built := Setup{planned, r.Parts}
	if r.Setups != nil {
		if built, err = r.Setups(ctx, planned); err != nil {
			return nil, err
		}
	}
	return &current{Setup: built, cells: cellsOf(built)}, nil
}

// each calls do for each engine that has cells. An error refuses the engine's cells, and the others continue. It
// returns errors that end the run: of a plan with one setup before its run folder exists, with Strict, or what the user
// can correct at once.
func (r *runner) each(ctx context.Context, s *current, do func(engine.Engine) error) error {
	one := len(r.setups) == 1
	for _, e := range s.Engines {
		cells := s.of(e)
		if len(cells) == 0 {
			continue
		}
		err := do(e)
		if err != nil && (ctx.Err() != nil || one && (r.Strict || fault.Of(err) == fault.Usage)) {
			return err
		}
		if err != nil && !one {
			err = fmt.Errorf("setup %d: %w", s.ID, err)
		}
		for _, c := range cells {
			c.gaveUp = err
		}
	}
	return nil
}

// alive returns err, or the reason if none of a setup's cells can run.
func (s *current) alive(err error) error {
	if err != nil || slices.ContainsFunc(s.cells, func(c *cell) bool { return c.gaveUp == nil }) {
		return err
	}
	return s.cells[0].gaveUp
}

// of returns an engine's cells that may run.
func (s *current) of(e engine.Engine) []*cell {
	return slices.DeleteFunc(slices.Clone(s.cells), func(c *cell) bool { return c.engine != e || c.gaveUp != nil })
}

// check asks a setup's engines whether they can run, unless all cells of the engine are refused.
func (r *runner) check(ctx context.Context, s *current) error {
	for _, c := range s.cells {
		if s.Refused != nil {
			c.gaveUp = s.Refused(c.Cell)
		}
	}
	if err := r.past.sameModel(s); err != nil {
		return err
	}
	err := r.each(ctx, s, func(e engine.Engine) error {
		if err := reusable(e, s.Plan.Isolation); err != nil {
			return err
		}
		return e.Check(ctx, s.Of(e))
	})
	if err == nil && s.Reference != nil {
		s.reference, err = s.Reference()
	}
	return err
}

// reusable refuses to share launches of an engine that starts a process for each generation.
func reusable(e engine.Engine, isolation string) error {
	if isolation == "" || isolation == plan.OfLaunch || !e.Caps().PerGeneration {
		return nil
	}
	return fault.New(fault.Usage, "leave the engine out, or use --isolation launch",
		"%s starts a process for each generation, so repetitions can't share a launch (--isolation %s)",
		e.Name(), isolation)
}

// prepare fills caches, so that nothing is compiled during a measured launch.
func (r *runner) prepare(ctx context.Context, s *current) error {
	return r.each(ctx, s, func(e engine.Engine) error {
		p, ok := e.(engine.Preparer)
		if !ok {
			return nil
		}
		return p.Prepare(ctx, s.Of(e), func(what string) {
			r.Progress(Event{Kind: Preparing, Setup: s.ID, Engine: e.Name(), Text: what})
		})
	})
}

// group executes setups whose launches alternate: it makes every attempt, and then scores. one is not nil if it was
// built before.
func (r *runner) group(ctx context.Context, group []plan.Setup, one *current) (first error) {
	last := group[len(group)-1]
	var all []*current
	for _, planned := range group {
		s, err := r.setup(ctx, planned, last.First+last.Cells(), one)
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
		if s.Pieces != nil && r.oneModel { // a record has only one text for each id
			r.w.Pieces(s.Pieces(seen(s.cells)))
		}
		if ctx.Err() != nil {
			r.cancelled = r.cancelled || s.Quality != nil // else the run is complete nevertheless
			first = cmp.Or(first, context.Cause(ctx))
		}
	}
	return first
}

// setup prepares a setup for its launches. It returns nil if none is to be made. end is the number of the first cell
// after the setup's group.
func (r *runner) setup(ctx context.Context, planned plan.Setup, end int, s *current) (_ *current, err error) {
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

// ready checks and prepares the engines of one setup of several, and announces its cells.
func (r *runner) ready(ctx context.Context, s *current) error {
	err := r.check(ctx, s)
	if err == nil {
		err = r.prepare(ctx, s)
	}
	was, _ := r.past.Cell(s.First + s.Cells() - 1)
	if err == nil && was.Isolation == "" { // the last one was not announced with everything known about it
		for _, c := range s.cells {
			r.w.Cell(c.Cell)
		}
	}
	return err
}

// pass counts a setup as done.
func (r *runner) pass(planned plan.Setup) {
	r.count.cellsDone += planned.Cells()
	r.count.launch += launchesOf(planned)
}

// lose records that none of a setup's cells can run.
func (r *runner) lose(planned plan.Setup, err error) error {
	err = fmt.Errorf("setup %d: %w", planned.ID, err)
	for _, c := range sketches(planned) {
		if !r.past.failed(r, c.ID) {
			r.fail(c, err)
		}
	}
	r.pass(planned)
	return err
}

func (r *runner) optional(engine string) bool { return r.Optional != nil && r.Optional(engine) }

// fail records that a cell can't run here.
func (r *runner) fail(c *cell, err error) {
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

// announce announces all cells: completely for a single setup, and as the plan has them for several.
func (r *runner) announce(one *current) {
	var cells []*cell
	if one != nil {
		cells = one.cells
	} else {
		for _, s := range r.setups {
			cells = append(cells, sketches(s)...)
		}
	}
	for _, c := range cells {
		if _, announced := r.past.Cell(c.ID); !announced {
			r.w.Cell(c.Cell)
		}
	}
}
