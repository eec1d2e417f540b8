// Package resolve decides for each cell of a plan whether it can run on this machine: it runs, it is refused with a
// reason, or only the engine knows after it has started. It finds or fetches models, generates prompts of the requested
// lengths, and predicts memory and time. A dry run prints the answers, and a run uses the same ones.
//
// It can't predict errors that appear only in a launch, which end the cell there. Free memory changes, so it is checked
// again before each launch. Times are predicted from earlier runs in the results folder, however busy the machine was.
// Without such runs, only launches that are slow because WebGPU runs on the CPU get a rough range.
package resolve

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/score"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// Engine is an engine of a setup, with what its interface does not tell before it has started.
type Engine struct {
	engine.Engine
	Kind    *engine.Kind
	Planned string        // name in plans
	Say     func(string)  // receives slow steps of a trial start
	Fetch   *models.Fetch // what would be fetched; nil: nothing
	Err     error         // why it can run nothing here; nil: it can
}

// accepts reports whether it can run a model as the setup's plan requests. It leaves nothing running.
func (e Engine) accepts(ctx context.Context, m models.Model) engine.Verdict {
	if e.Err != nil {
		return engine.Refuse(e.Err)
	}
	return e.Kind.Accepts(ctx, e.Engine, m)
}

// counts reports whether it tokenises prompts by the model's file.
func (e Engine) counts() bool { return e.Kind.Runs != nil }

// own returns the engine's own form of a model, if the plan names one for each engine.
func (e Engine) own(m models.Model) models.Model {
	if of, ok := m.Forms[e.Planned]; ok {
		of.Context = m.Context
		return of
	}
	return m
}

// form returns the form of a model that the engine runs: its own, and a package's GGUF unless it runs packages.
func (e Engine) form(m models.Model) models.Model {
	m = e.own(m)
	if m.GGUF == nil || e.Kind.Reads(m.Format) {
		return m
	}
	of := *m.GGUF
	of.Context = m.Context
	return of
}

// unpacks reports whether the engine needs the GGUF of a package. A server has its own model.
func (e Engine) unpacks(m models.Model) bool {
	return m.Converts() && !e.Kind.Reads(m.Format) && e.Kind.Reads(models.GGUF) && (e.counts() || !e.Caps().Served)
}

// Means is what a Resolver works with.
type Means struct {
	// Engines returns the configured engines of a setup's plan, in its order. It starts nothing.
	Engines func(context.Context, plan.Plan) ([]Engine, error)
	// Complete writes the chosen defaults into a setup's plan, so that the run can be repeated.
	Complete func(*plan.Plan, models.Model)
	Models   models.Finder
	// Chat renders texts with a model's own chat template, for a setup's plan.
	Chat func(ctx context.Context, p plan.Plan, m models.Model, texts []string) ([]engine.Rendered, error)
	// Dry fetches and starts nothing, and predicts instead.
	Dry     bool
	Results string // folder of earlier runs, for predicting times
	GPU     bool   // the machine seems to have a GPU
	// Warnings receives errors of closing engines.
	Warnings io.Writer
}

// Resolver resolves the setups of one plan. It caches what it has found out.
type Resolver struct {
	*plan.Matrix
	Means
	cache
	opened  *set // engines of the current setup
	fetches []models.Fetch
	text    *score.Check // of score checks of the built-in model; nil: not made yet
}

// New expands a plan, and returns a Resolver for its cells. Its errors are those of plan.Expand.
func New(p plan.Plan, m Means) (*Resolver, error) {
	cells, err := p.Expand()
	if err != nil {
		return nil, err
	}
	return &Resolver{Matrix: cells, Means: m, cache: cache{}}, nil
}

// Resolved is a matrix with the answer for each of its cells. The cells have their prompts, and the plans of setups the
// chosen defaults.
type Resolved struct {
	*plan.Matrix
	Chosen   []*Chosen      // by setup
	Answers  []Answer       // by cell
	Scorings []Scoring      // of the plan's text, in their order
	Fetches  []models.Fetch // what would be fetched
	Notes    []string       // remarks on the figures
	by       *Resolver
}

// Chosen is a setup with what was chosen for it.
type Chosen struct {
	*plan.Setup
	Planned plan.Plan // without defaults
	Model   models.Model
	launch  *launch
	ids     map[string][]int // token ids of rendered prompts
	err     error            // why none of its cells can run
}

// Answer is what is known of a cell before it is launched.
type Answer struct {
	Verdict engine.Verdict
	// Prediction is what it is likely to need, in a dry run and unless it is refused.
	Prediction Prediction
}

// Resolve decides for each cell of the plan, and completes them. It returns an error if ctx is done.
func (r *Resolver) Resolve(ctx context.Context) (*Resolved, error) {
	m := r.Matrix
	out := &Resolved{Matrix: m, Answers: make([]Answer, len(m.Cells)), by: r}
	sourced := make([]error, len(m.Cells))
	for i := range m.Cells {
		sourced[i] = r.source(&m.Plan, &m.Cells[i])
	}
	for _, planned := range m.Setups {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r.setup(ctx, out, planned, cmp.Or(sourced[planned.Cells[0].ID-1:][:len(planned.Cells)]...))
	}
	out.Fetches = r.fetches
	return out, context.Cause(ctx)
}

// setup decides for the cells of a setup. sourced is why a prompt cannot be read.
func (r *Resolver) setup(ctx context.Context, out *Resolved, planned *plan.Setup, sourced error) {
	s := &Chosen{Setup: planned, Planned: planned.Plan, launch: r.launch(ctx, planned.Plan)}
	out.Chosen = append(out.Chosen, s)
	for _, line := range unheeded(s.Planned) {
		out.note(line)
	}
	s.err = cmp.Or(r.choose(s), sourced)
	if s.err == nil {
		s.err = r.chat(ctx, out, s)
	}
	if s.err == nil && s.Plan.Quality != "" {
		if _, err := r.quality(s.Plan.Quality, s.Model); fault.Of(err) == fault.Usage {
			s.err = err
		}
	}
	verdicts := make([]engine.Verdict, len(s.Plan.Engines))
	for i := range verdicts {
		verdicts[i] = r.verdict(ctx, s, i)
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		wrong, tooLong := r.asks(ctx, s, c)
		at := slices.Index(s.Plan.Engines, c.Engine)
		answer := &out.Answers[c.ID-1]
		if answer.Verdict = verdicts[at]; answer.Verdict.Answer == engine.Refused {
			continue
		}
		e := s.launch.set.engines[at]
		if wrong == nil && e.counts() {
			wrong = tooLong
		}
		if wrong != nil {
			answer.Verdict = engine.Refuse(wrong)
			continue
		}
		out.note(queues(e, c))
		out.note(r.slow(s, at))
		answer.Prediction = r.prediction(ctx, s, c, at)
	}
	r.scorings(out, s)
}

// note adds a note once.
func (p *Resolved) note(text string) {
	if text != "" && !slices.Contains(p.Notes, text) {
		p.Notes = append(p.Notes, text)
	}
}

// queues returns a note if an engine can't serve all concurrent requests.
func queues(e engine.Engine, c *record.Cell) string {
	if c.Traffic == nil {
		return ""
	}
	wants := c.Traffic.Concurrency
	if c.Traffic.Loop == record.OpenLoop && wants == 0 {
		wants = c.Traffic.Requests
	}
	if most := e.Caps().Requests; wants > most {
		return fmt.Sprintf("%s serves %s at a time; further requests wait, and their times include the wait", e.Name(),
			words.Count(most, "request"))
	}
	return ""
}

// verdict decides for an engine of a setup.
func (r *Resolver) verdict(ctx context.Context, s *Chosen, at int) engine.Verdict {
	if lines := unserved(s.Planned, s.Plan.Engines[at]); len(lines) > 0 {
		return engine.Refuse(fault.New(fault.NotSupported, "leave it out of the plan", "%s", strings.Join(lines, "; ")))
	}
	if err := cmp.Or(s.launch.lacks[s.Plan.Engines[at]], s.err); err != nil {
		return engine.Refuse(err)
	}
	return r.accepts(ctx, s.launch, at, s.Model)
}

// First returns the first setup that can run, or nil.
func (p *Resolved) First() *Chosen {
	for _, s := range p.Chosen {
		if s.err == nil {
			return s
		}
	}
	return nil
}

// cache keeps what was found out, by arrays of what it depends on. Most begin with a name.
type cache map[any]any

type found[V any] struct {
	value V
	err   error
}

// once returns what is known of a key, or that of find.
func once[V any](c cache, key any, find func() (V, error)) (V, error) {
	f, known := c[key].(found[V])
	if !known {
		f.value, f.err = find()
		c[key] = f
	}
	return f.value, f.err
}
