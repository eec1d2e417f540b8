package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/rounding"
)

// Parts is what executes a setup: what was found out about it before, and what answers later questions.
type Parts struct {
	Engines []engine.Engine // in the order of the setup's plan
	Model   models.Model
	Forms   map[engine.Engine]models.Model // the model as an engine loads it; Model, if an engine has none
	// Expected maps prompts to the tokens that the model certainly generates; it may cover only the first ones. A
	// launch that generates others has failed.
	Expected  map[string][]int
	IDs       map[string][]int // token ids of prompts that a chat template was rendered for; nil: none
	CheckText *score.Check     // text of score checks; nil: what the text engine generates
	Anchored  bool             // the reference implementation computes this model
	Quality   *score.Windows   // that engines score for quality; nil: none
	NoQuality error            // why there is none, though the plan asks for it
	Refused   map[int]error    // why cells can't run here, by number
	Answers                    // nil: nothing is predicted, and there is no traffic
}

// Answers are about what is known only during the run, or takes long.
type Answers interface {
	// Predict predicts a cell's memory, after its engine has prepared.
	Predict(context.Context, record.Cell) record.Prediction
	// Judge reports whether predicted memory fits into free memory and these GPUs.
	Judge(context.Context, record.Prediction, *gpu.Monitor) record.Risk
	// Ask returns the prompt and length of a request of a cell's traffic. In a conversation, Before has all earlier
	// turns.
	Ask(record.Cell, traffic.Request) engine.Request
	// Anchor computes a text from a position on with the reference implementation, and how far it moves by rounding in
	// each of the arithmetics.
	Anchor(ctx context.Context, ids []int, from int, of [][]rounding.Arithmetic) (*score.Anchor, error)
	// Pieces returns the texts of tokens; nil: unknown.
	Pieces(ids []int) map[int]string
}

// Of returns the model as an engine loads it.
func (p Parts) Of(e engine.Engine) models.Model {
	if m, ok := p.Forms[e]; ok {
		return m
	}
	return p.Model
}

// current is the setup that is being executed.
type current struct {
	*plan.Setup
	Parts
	cells  []*series
	order  []turn // to come
	textOf string // the engine, as in records, whose text all engines score; empty: not known yet

	checked checked
}

// build makes ready what executes a setup, and its cells.
func (r *runner) build(ctx context.Context, planned *plan.Setup) (*current, error) {
	parts, err := r.Open(ctx, planned)
	if err != nil {
		return nil, err
	}
	s := &current{Setup: planned, Parts: parts, cells: seriesOf(planned)}
	s.describe()
	return s, nil
}

// each calls do for each engine that has cells. An error refuses the engine's cells, and the others continue. It
// returns errors that end the run: of a plan with one setup before its run folder exists, with Strict, or what the user
// can correct at once.
func (r *runner) each(ctx context.Context, s *current, do func(engine.Engine) error) error {
	one := len(r.Setups) == 1
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
	if err != nil || slices.ContainsFunc(s.cells, func(c *series) bool { return c.gaveUp == nil }) {
		return err
	}
	return s.cells[0].gaveUp
}

// of returns an engine's cells that may run.
func (s *current) of(e engine.Engine) []*series {
	return slices.DeleteFunc(slices.Clone(s.cells), func(c *series) bool { return c.engine != e || c.gaveUp != nil })
}

// check asks a setup's engines whether they can run, unless all cells of the engine are refused.
func (r *runner) check(ctx context.Context, s *current) error {
	for _, c := range s.cells {
		c.gaveUp = s.Refused[c.ID]
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
	if err == nil {
		err = s.chooseText()
	}
	return err
}

// chooseText chooses the engine whose text all engines score: the plan's, else the first outside a browser, else the
// first. It must report token ids, because a text without them can't be forced on an engine; some engines know that
// only after they were checked.
func (s *current) chooseText() error {
	first, native := -1, -1
	for i, e := range s.Engines {
		name := s.Plan.Engines[i]
		if name == s.Plan.TextOf {
			if s.textOf = e.Name(); !e.Caps().TokenIDs {
				return fault.New(fault.Usage, "name an engine that does, such as llamacpp or webllm",
					"--text-of %s: it does not report token ids, so other engines can't score its text", name)
			}
			return nil
		}
		if !e.Caps().TokenIDs || len(s.of(e)) == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		if native < 0 && !s.Plan.Kind(name).Browser {
			native = i
		}
	}
	switch {
	case s.Plan.TextOf != "": // of another setup
		s.textOf = s.Plan.TextOf
	case native >= 0:
		s.textOf = s.Engines[native].Name()
	default:
		s.textOf = s.Engines[max(first, 0)].Name()
	}
	return nil
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

// pass counts a setup as done.
func (r *runner) pass(planned *plan.Setup) {
	r.count.cellsDone += len(planned.Cells)
	r.count.launch += launchesOf(planned)
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

func (r *runner) optional(engine string) bool { return r.Optional != nil && r.Optional(engine) }

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
