package run

import (
	"context"
	"fmt"
	"slices"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
	"llmparity/internal/traffic"
)

// Setup is a setup of the plan, as it was resolved, with what carries it out.
type Setup struct {
	plan.Setup
	Parts
}

// Parts is what carries a setup out: what must be there before an engine can be launched.
type Parts struct {
	Engines []engine.Engine // in the order of the setup's plan, one for each that it names
	Model   engine.Model
	// Expected is what the model says after each prompt, greedily, where that is known for certain; it may be shorter
	// than what is asked for. A launch that says something else has failed.
	Expected map[string][]int
	// Unsure are the engines that nothing is expected of: they compute in other numbers, or in another order.
	Unsure []string
	// Reference names the engine, as records do, whose text all engines that can score are asked about; nil: there is
	// none. It is called when all engines are checked, for some can't tell before what they can do.
	Reference func() (string, error)
	// Pieces gives the texts of tokens; nil: they are not known.
	Pieces func(ids []int) map[int]string
	// Predict says what a cell's memory will be, once its engine has prepared; nil: nothing is predicted.
	Predict func(context.Context, record.Cell) record.Prediction
	// Judge says whether what was predicted fits into what is free now, on a machine with these GPUs; nil: it is not
	// judged.
	Judge func(context.Context, record.Prediction, *gpu.Monitor) record.Risk
	// Refused says why a cell can't run here, as was found before anything was launched: that is recorded, and nothing
	// is tried; nil: all cells can.
	Refused func(record.Cell) error
	// Ask says what a request of a cell's traffic asks, its prompt and how many tokens; nil: what the cell or the
	// request's kind says. A turn of a conversation that is not its first has in Before all that was said until then.
	Ask func(record.Cell, traffic.Request) engine.Request
	// Files are those that an engine reads a model from, which lie in memory or not when it is launched; nil: the
	// model's own.
	Files func(engine.Engine) []string
}

// current is the setup whose turn it is.
type current struct {
	Setup
	cells     []*cell
	reference string
}

// build has a setup's parts made, and makes its cells, whose numbers begin at from. The function that it gives ends
// what was made, and is never nil.
func (r *runner) build(ctx context.Context, planned plan.Setup, from int) (s *current, done func(), err error) {
	built := Setup{planned, r.Parts}
	if r.Setups != nil {
		built, done, err = r.Setups(ctx, planned)
	}
	if done == nil {
		done = func() {}
	}
	if err != nil {
		return nil, done, err
	}
	if len(built.Engines) != len(planned.Plan.Engines) || len(built.Shapes) != len(planned.Shapes) {
		return nil, done, fmt.Errorf("setup %d has %d engines and %d shapes, and %d and %d were built", planned.ID,
			len(planned.Plan.Engines),
			len(planned.Shapes), len(built.Engines), len(built.Shapes))
	}
	s = &current{Setup: built}
	s.cells = cellsOf(built, planned, from)
	return s, done, nil
}

// trouble is told what is wrong with an engine of a setup. Where it gives an error back, the run ends by it.
type trouble func(engine.Engine, error) error

// gives is for a plan of one setup, before it has a folder: the engine's cells are refused, and the others go on.
func (r *runner) gives(ctx context.Context, s *current) trouble {
	return func(e engine.Engine, err error) error {
		if r.Strict || ctx.Err() != nil || fault.Of(err) == fault.Usage {
			return err
		}
		for _, c := range s.of(e) {
			c.given = err
		}
		return nil
	}
}

// alive is why a setup comes to nothing: err, or that none of its cells can run.
func (r *runner) alive(s *current, err error) error {
	if err != nil || slices.ContainsFunc(s.cells, func(c *cell) bool { return c.given == nil }) {
		return err
	}
	return s.cells[0].given
}

// fails has the engine's cells fail, and the others go on.
func (r *runner) fails(s *current) trouble {
	return func(e engine.Engine, err error) error {
		for _, c := range s.of(e) {
			r.fail(c, s.named(err))
		}
		return nil
	}
}

// of lists the cells of an engine that may run.
func (s *current) of(e engine.Engine) []*cell {
	return slices.DeleteFunc(slices.Clone(s.cells), func(c *cell) bool { return c.engine != e || c.given != nil })
}

// named says of which setup an error is.
func (s *current) named(err error) error { return fmt.Errorf("setup %d: %w", s.ID, err) }

// check asks a setup's engines whether they can run, but for those none of whose cells can.
func (r *runner) check(ctx context.Context, s *current, wrong trouble) error {
	for _, c := range s.cells {
		if s.Refused != nil {
			c.given = s.Refused(c.Cell)
		}
	}
	if err := r.past.sameModel(r, s); err != nil {
		return err
	}
	for _, e := range s.Engines {
		if len(s.of(e)) == 0 {
			continue
		}
		err := reusable(e, s.Plan.Isolation)
		if err == nil {
			err = e.Check(ctx, s.Model)
		}
		if err != nil {
			if err := wrong(e, err); err != nil {
				return err
			}
		}
	}
	if s.Reference != nil {
		var err error
		if s.reference, err = s.Reference(); err != nil {
			return err
		}
	}
	return nil
}

// reusable refuses to reuse launches of an engine that has none but a generation's.
func reusable(e engine.Engine, isolation string) error {
	if isolation == "" || isolation == plan.OfLaunch || !e.Caps().PerGeneration {
		return nil
	}
	return fault.New(fault.Usage, "leave it out, or use --isolation launch",
		"%s starts a process for each generation: there is no launch that repetitions could reuse (--isolation %s)",
		e.Name(), isolation)
}

// prepare makes what is cached, so that no launch is measured while something compiles.
func (r *runner) prepare(ctx context.Context, s *current, wrong trouble) error {
	for _, e := range s.Engines {
		p, ok := e.(engine.Preparer)
		if !ok || len(s.of(e)) == 0 {
			continue
		}
		err := p.Prepare(ctx, s.Model, func(
			what string) {
			r.Progress(Event{Kind: Preparing, Setup: s.ID, Engine: e.Name(), Text: what})
		})
		if err != nil {
			if err := wrong(e, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// setup carries out a setup, which was built before where it is the only one.
func (r *runner) setup(ctx context.Context, planned plan.Setup, from int, s *current) error {
	if r.past.over(r, planned, from) && !r.past.unscored(planned, from) {
		r.pass(planned)
		return nil
	}
	if s == nil {
		built, done, err := r.build(ctx, planned, from)
		defer done()
		if err == nil {
			s, err = built, r.ready(ctx, built)
		}
		if err != nil && (ctx.Err() != nil || refuses(err)) {
			r.cancelled = true
			return err
		}
		if err != nil {
			return r.lose(planned, from, err)
		}
	}
	return r.carryOut(ctx, s)
}

// ready checks and prepares the engines of one setup of several, and announces its cells with all that is known of them
// now.
func (r *runner) ready(ctx context.Context, s *current) error {
	err := r.check(ctx, s, r.fails(s))
	if err == nil {
		err = r.prepare(ctx, s, r.fails(s))
	}
	if err == nil && !r.past.complete(s) {
		for _, c := range s.cells {
			r.w.Cell(c.Cell)
		}
	}
	return err
}

// pass counts what is behind the run already.
func (r *runner) pass(planned plan.Setup) {
	r.count.cellsDone += planned.Cells()
	r.count.launch += launchesOf(planned)
}

// lose records that none of a setup's cells can run.
func (r *runner) lose(planned plan.Setup, from int, err error) error {
	err = fmt.Errorf("setup %d: %w", planned.ID, err)
	for c := range sketches(planned, from) {
		if !r.past.failed(r, c.ID) {
			r.fail(&cell{Cell: c}, err)
		}
	}
	r.pass(planned)
	return err
}

func (r *runner) optional(engine string) bool { return r.Optional != nil && r.Optional(engine) }

// fail records that a cell can't run here.
func (r *runner) fail(c *cell, err error) {
	c.given, c.recorded = err, true
	if !r.optional(c.Engine) {
		r.failed = true
		r.note(fmt.Errorf("%s: %w", c.Engine, err))
	}
	_, class := outcome(context.Background(), err)
	r.w.Refuse(c.Cell, class, err)
	r.Progress(Event{Kind: Ended, Setup: c.Setup, Cell: c.ID, Cells: r.count.cells, CellsDone: r.count.cellsDone,
		Launch:   r.count.launch + 1,
		Launches: r.count.launches, Engine: c.Engine, Repetition: 1, Repetitions: c.Repetitions,
		Text: string(record.Refused), Err: err})
}

// carryOut makes every attempt of a setup whose engines have prepared, and scores behind them.
func (r *runner) carryOut(ctx context.Context, s *current) error {
	r.predictAll(ctx, s)
	err := r.launches(ctx, s)
	r.cancelled, r.failed = ctx.Err() != nil || refuses(err), r.failed || err != nil
	if !r.cancelled {
		r.scoreAll(ctx, s)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx) // the run is whole all the same
		}
	}
	if s.Pieces != nil && r.oneModel { // a record has one text for an id
		r.w.Pieces(s.Pieces(seen(s.cells)))
	}
	return err
}

// announce tells of all the run's cells: those of the only setup as they are, of several what the plan alone says of
// them, until each is built.
func (r *runner) announce(one *current) {
	if one != nil {
		for _, c := range one.cells {
			if !r.past.Announced(c.ID) {
				r.w.Cell(c.Cell)
			}
		}
		return
	}
	from := 1
	for planned := range r.Plan.Setups() {
		for c := range sketches(planned, from) {
			if !r.past.Announced(c.ID) {
				r.w.Cell(c)
			}
		}
		from += planned.Cells()
	}
}
