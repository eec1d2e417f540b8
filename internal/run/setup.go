package run

import (
	"context"
	"fmt"
	"iter"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// Setup is a setup of the plan, as it was resolved, with what carries it out.
type Setup struct {
	plan.Setup
	Parts
}

// Parts is what carries a setup out: what must be there before an engine can be launched.
type Parts struct {
	Engines []engine.Engine // in the plan's order
	Model   engine.Model
	// Expected is what the model says after each prompt, greedily, where that is known for certain; it may be shorter than what
	// is asked for. A launch that says something else has failed.
	Expected map[string][]int
	// Unsure are the engines that nothing is expected of: they compute in other numbers, or in another order.
	Unsure []string
	// Reference names the engine, as records do, whose text all engines that can score are asked about; nil: there is none. It is
	// called when all engines are checked, for some can't tell before what they can do.
	Reference func() (string, error)
	// Pieces gives the texts of tokens; nil: they are not known.
	Pieces func(ids []int) map[int]string
	// Foretell says what a cell's memory will be, once its engine has prepared; nil: nothing is foretold.
	Foretell func(context.Context, record.Cell) record.Prediction
	// Judge says whether what was foretold fits into what is free now, on a machine with these GPUs; nil: it is not judged.
	Judge func(context.Context, record.Prediction, *gpu.Monitor) record.Risk
	// Refused says why a cell can't run here, as was found before anything was launched: that is recorded, and nothing is tried; nil: all
	// cells can.
	Refused func(record.Cell) error
}

// setups gives the plan's setups one after the other.
func setups(p plan.Plan) iter.Seq[plan.Setup] {
	return func(yield func(plan.Setup) bool) { yield(only(p)) }
}

// only is the one setup of a plan without lists.
func only(p plan.Plan) plan.Setup {
	s := plan.Setup{ID: 1, Plan: p}
	for i, prompt := range p.Prompts {
		s.Shapes = append(s.Shapes, plan.Shape{PromptID: i + 1, Prompt: prompt, MaxTokens: p.MaxTokens})
	}
	return s
}

// build has a setup's parts made. The function that it gives ends them, and is never nil.
func (o Options) build(ctx context.Context, s plan.Setup) (Setup, func(), error) {
	if o.Setups == nil {
		return Setup{s, o.Parts}, func() {}, nil
	}
	built, done, err := o.Setups(ctx, s)
	if done == nil {
		done = func() {}
	}
	return built, done, err
}

// current is the setup whose turn it is.
type current struct {
	Setup
	cells     []*cell
	reference string
}

// ready checks and prepares a setup's engines, and makes its cells.
func (r *runner) ready(ctx context.Context, s Setup, from int) (*current, error) {
	c := &current{Setup: s}
	if err := c.reusable(); err != nil {
		return nil, err
	}
	for _, e := range c.Engines {
		if err := e.Check(ctx, c.Model); err != nil {
			return nil, err
		}
	}
	if c.Reference != nil {
		var err error
		if c.reference, err = c.Reference(); err != nil {
			return nil, err
		}
	}
	c.cells = cellsOf(s, from)
	return c, nil
}

// reusable refuses to reuse launches of engines that have none but a generation's.
func (s *current) reusable() error {
	for _, e := range s.Engines {
		if s.Plan.Isolation != "" && s.Plan.Isolation != plan.OfLaunch && e.Caps().PerGeneration {
			return fault.New(fault.Usage, "leave it out, or use --isolation launch",
				"%s starts a process for each generation: there is no launch that repetitions could reuse (--isolation "+
					"%s)", e.Name(), s.Plan.Isolation)
		}
	}
	return nil
}

// prepare makes what is cached, so that no launch is measured while something compiles.
func (r *runner) prepare(ctx context.Context, s *current) error {
	for _, e := range s.Engines {
		if p, ok := e.(engine.Preparer); ok {
			err := p.Prepare(ctx, s.Model, func(what string) { r.Progress(Event{Kind: Preparing, Engine: e.Name(), Text: what}) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// carryOut makes every attempt of a setup whose engines have prepared, and scores behind them.
func (r *runner) carryOut(ctx context.Context, s *current) error {
	for _, c := range s.cells {
		r.w.Cell(c.Cell)
	}
	r.foretellAll(ctx, s)
	err := r.launches(ctx, s)
	r.cancelled, r.failed = ctx.Err() != nil, r.failed || err != nil
	if ctx.Err() == nil {
		r.scoreAll(ctx, s)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx) // the run is whole all the same
		}
	}
	if s.Pieces != nil {
		r.w.Pieces(s.Pieces(seen(s.cells)))
	}
	return err
}

// named says of which setup an error is, where there are several.
func (r *runner) named(s plan.Setup, err error) error {
	if err == nil || r.setups < 2 {
		return err
	}
	return fmt.Errorf("setup %d: %w", s.ID, err)
}
