// Package resolve answers, for each cell of a plan, whether it can run on this machine: it runs, it is refused with a
// reason, or only the engine knows once it has started. It finds or fetches models, makes prompts of the lengths that
// are asked for, and predicts memory and time. A dry run prints the answers, a preflight acts on them, and a run
// carries out the same values.
//
// It can't see what shows only at a launch: an engine that breaks off while it loads ends its cell there. What is free
// is judged again before each launch, for it changes meanwhile. Times are predicted by earlier runs in the results
// folder, of which nothing tells how busy the machine was.
package resolve

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"llmparity/internal/engine"
	"llmparity/internal/estimate"
	"llmparity/internal/fault"
	"llmparity/internal/model"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// Engine is an engine of a setup, with what its interface does not tell before it has started.
type Engine struct {
	engine.Engine
	Planned string // its name in plans
	// Accepts says whether it can run a model as the setup's plan wants it. It starts nothing that stays.
	Accepts func(context.Context, engine.Model) engine.Verdict
	// Confirm decides what Accepts leaves unknown, by starting something that ends again; nil: the first launch
	// decides.
	Confirm func(context.Context, engine.Model) error
	// Memory says how it has a model in memory, as far as that is known by now.
	Memory func(engine.Model) (Memory, error)
	// Files are those that it reads a model from; nil: the model's own.
	Files   func(engine.Model) []string
	Fetch   *model.Fetch // what of it would be fetched; nil: nothing
	Browser bool         // it runs in a browser
	Counts  bool         // it counts a prompt's tokens by the model's file
	Coarse  bool         // its sums may differ from the reference's by more than rounding in single precision
}

// Options is what a Resolver works with.
type Options struct {
	// Engines gives the engines of a setup's plan, in its order and configured as it says. It starts nothing.
	Engines func(context.Context, plan.Plan) ([]Engine, error)
	// Complete writes into a setup's plan what was chosen by default, so that the run can be repeated by it.
	Complete func(*plan.Plan, engine.Model)
	Models   model.Finder
	// Dry has nothing fetched, made or started; what cells are likely to take is predicted instead.
	Dry     bool
	Results string // the folder of earlier runs, by which times are predicted
	GPU     bool   // the machine seems to have one
	// Warnings takes what goes wrong when engines end: the run has its record by then.
	Warnings io.Writer
}

// Resolver resolves the setups of one plan. It keeps what it has found out.
type Resolver struct {
	Options
	launches    map[launchKey]*launch
	sets        map[setKey]*set
	opened      *set // engines of the setup that is carried out
	models      memo[modelKey, engine.Model]
	fetches     []model.Fetch
	prompts     promptCache
	estimates   estimates
	predictions predictions
}

// New makes a Resolver for one plan.
func New(o Options) *Resolver {
	r := &Resolver{Options: o, launches: map[launchKey]*launch{}, sets: map[setKey]*set{},
		estimates: estimates{models: map[[2]string]estimate.Model{}}}
	if o.Dry {
		r.predictions.past = pastRuns(o.Results)
	}
	return r
}

// Plan is a plan with the answer for each of its cells.
type Plan struct {
	plan.Plan
	Setups  []*Setup
	Cells   []Cell        // in the record's order
	Fetches []model.Fetch // what would be fetched
	Notes   []string      // what a reader of its figures should know
}

// Setup is a setup as it is carried out: what was chosen by default stands in its plan, and its shapes have their
// prompts.
type Setup struct {
	plan.Setup
	Planned plan.Plan // as the plan has it
	Model   engine.Model
	launch  *launch
	err     error // why none of its cells can run
	from    int   // of the plan's cells, its first
}

// Cell is a cell with its answer.
type Cell struct {
	ID      int // its number in the record
	Setup   *Setup
	Shape   *plan.Shape
	Engine  string // its name in plans
	Verdict engine.Verdict
	// Prediction is what it is likely to take, where it was asked for a dry run and is not refused.
	Prediction Prediction
	at         int // of the setup's engines
}

// Resolve answers for each cell of a plan. An error says that there are no answers: the plan has no cells, or ctx is
// over.
func (r *Resolver) Resolve(ctx context.Context, p plan.Plan) (*Plan, error) {
	_, cells, err := p.Count()
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "", "the plan")
	}
	out := &Plan{Plan: p, Cells: make([]Cell, 0, cells)}
	for planned := range p.Setups() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r.setup(ctx, out, planned)
	}
	out.Fetches = r.fetches
	return out, context.Cause(ctx)
}

// setup answers for the cells of a setup.
func (r *Resolver) setup(ctx context.Context, out *Plan, planned plan.Setup) {
	s := &Setup{Setup: planned, Planned: planned.Plan, launch: r.launch(ctx, planned.Plan), from: len(out.Cells)}
	out.Setups = append(out.Setups, s)
	for _, line := range planned.Plan.Unheeded() {
		out.note(line)
	}
	s.err = r.choose(s)
	s.Shapes = slices.Clone(s.Shapes) // other setups' are the same
	for i := range s.Shapes {
		if err := r.prompts.source(&s.Shapes[i]); s.err == nil {
			s.err = err // a plan whose files are not there is not begun
		}
	}
	verdicts := make([]engine.Verdict, len(s.Plan.Engines))
	for i := range verdicts {
		verdicts[i] = r.verdict(ctx, s, i)
	}
	for i := range s.Shapes {
		shape := &s.Shapes[i]
		asks := r.asks(s, shape)
		for at, name := range s.Plan.Engines {
			if !shape.Asks(name) {
				continue
			}
			c := Cell{ID: len(out.Cells) + 1, Setup: s, Shape: shape, Engine: name, Verdict: verdicts[at], at: at}
			if c.Verdict.Answer != engine.Refused {
				e := s.launch.set.engines[at]
				if err := asks.refused(e); err != nil {
					c.Verdict = engine.Refuse(err)
				} else {
					out.note(queues(e, shape))
					c.Prediction = r.prediction(ctx, &c)
				}
			}
			out.Cells = append(out.Cells, c)
		}
	}
}

// note adds what was not said before.
func (p *Plan) note(text string) {
	if text != "" && !slices.Contains(p.Notes, text) {
		p.Notes = append(p.Notes, text)
	}
}

// queues notes that an engine can't do at once what is asked of it at once.
func queues(e engine.Engine, s *plan.Shape) string {
	if s.Traffic == nil {
		return ""
	}
	wants := s.Traffic.Concurrency
	if s.Traffic.Loop == record.OpenLoop && wants == 0 {
		wants = s.Traffic.Requests
	}
	if most := e.Caps().Requests; wants > most {
		return fmt.Sprintf("%s does %d at a time: of more requests than that, some wait for others, and what they wait "+
			"is in their times", e.Name(), most)
	}
	return ""
}

// verdict answers for an engine of a setup.
func (r *Resolver) verdict(ctx context.Context, s *Setup, at int) engine.Verdict {
	if lines := s.Planned.Unserved(s.Plan.Engines[at]); len(lines) > 0 {
		return engine.Refuse(fault.New(fault.NotSupported, "leave it out of the plan", "%s", strings.Join(lines, "; ")))
	}
	if s.err != nil {
		return engine.Refuse(s.err)
	}
	return r.accepts(ctx, s.launch.set, at, s.Model)
}

// First is the first setup that can be carried out; nil: there is none.
func (p *Plan) First() *Setup {
	for _, s := range p.Setups {
		if s.err == nil {
			return s
		}
	}
	return nil
}
