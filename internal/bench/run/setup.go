package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/traffic"
	"llmparity/internal/bench/until"
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
	textOf string // the text engine, as in records: all engines score its text; empty: not known yet

	checked checked
}

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

// over reports that the cell gets no more attempts.
func (c *series) over() bool { return c.gaveUp != nil || c.expired || c.enough.Stopped() }

// named adds the engine's name to an error that does not begin with it.
func (c *series) named(err error) error {
	if strings.HasPrefix(err.Error(), c.Engine+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", c.Engine, err)
}

// seriesOf are the cells of a setup, as far as the plan alone defines them.
func seriesOf(s *plan.Setup) (out []*series) {
	for _, c := range s.Cells {
		out = append(out, &series{Cell: c})
	}
	return out
}

// describe adds to a setup's cells what their engines and their model say.
func (s *current) describe() {
	for _, c := range s.cells {
		c.engine = s.Engines[slices.Index(s.Plan.Engines, c.Engine)]
		caps := c.engine.Caps()
		c.Engine = c.engine.Name()
		c.Model = s.Model.Model
		if m := s.Of(c.engine).Model; s.Model.Forms != nil {
			m.Form, m.Name = m.Name, c.Model.Name
			c.Model = m
		}
		c.Model.Context = s.Plan.Context
		c.Isolation, c.PromptCache = caps.Isolation, record.CacheOff
		c.StopsAtEnd, c.NoTokenIDs, c.Pieces, c.PerGeneration = !caps.IgnoreEOS, !caps.TokenIDs, !caps.Exact,
			caps.PerGeneration
		if caps.PromptCache {
			c.PromptCache = record.CacheOn
		}
	}
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

// mostFailedStarts is how many consecutive launches may fail to start before their cell is given up.
const mostFailedStarts = 2

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

// chooseText chooses the text engine, whose text all engines score: the plan's, else the first outside a browser, else
// the first. It must report token ids, because a text without them can't be forced on an engine; some engines know that
// only after they were checked.
func (s *current) chooseText() error {
	first, native := -1, -1
	for i, e := range s.Engines {
		name := s.Plan.Engines[i]
		if name == s.Plan.TextOf {
			if s.textOf = e.Name(); !e.Caps().TokenIDs {
				return fault.New(fault.Usage, "name an engine that reports them",
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
