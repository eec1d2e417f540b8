// Package run executes a plan: it launches engines in order, takes each launch through its phases, samples meanwhile,
// and records everything.
//
// It knows engines only by their interface. The launches of a model's cells alternate; models run one after another. A
// failed launch is recorded and the run continues. An error that the user must fix, such as a missing program, ends its
// cell. The run folder holds the whole state: an interrupted run can be resumed and makes only what is missing.
package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/until"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample/gpu"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Options is what a run needs.
type Options struct {
	*plan.Matrix
	// Open makes ready what executes a setup, when its turn comes. If that fails for a setup of several, its cells fail
	// and the run continues.
	Open func(context.Context, *plan.Setup) (Parts, error)
	// Optional reports whether an engine, by its name in records, was not requested by name. If it can't run, the run
	// still succeeds. nil: all were requested.
	Optional func(engine string) bool
	Strict   bool // launch nothing if an engine of the only setup can't run

	Out      string // folder for run folders
	Tool     record.Tool
	Progress Progress
	Profiles Profiles
	GPU      gpu.Options // where to look for GPUs

	Resume       string // run folder to resume; empty: a new run
	RetryFailed  bool   // with Resume: repeat failed attempts
	AllowChanged bool   // with Resume: accept another llmparity, engine or browser

	// Turn is called before each launch and returns when it may begin; nil: at once. Its error ends the run.
	Turn func(context.Context) error
	// Side is which side of an interleaved run this is; nil: it has one side.
	Side    *record.Side
	against string // folder of the run that this one is interleaved with
}

// runner executes a plan.
type runner struct {
	Options
	w        *record.Writer
	gpus     *gpu.Monitor
	past     *past
	count    counts                  // for the whole run
	live     *live                   // session that the next attempt continues in, or nil
	oneModel bool                    // all setups have the same model, and so the same token ids
	opened   bool                    // there was a launch to cool down from
	texts    map[string]*score.Check // of score checks, by model, if the model has none of its own
	memory   atomic.Int64            // total RSS at the last reading
	toScore  int                     // tokens that engines are still to score in this setup
	// The outcome of launches. Scoring does not count.
	cancelled, failed bool
	first             error // the error with priority
}

// counts holds totals and what is done so far.
type counts struct {
	cells, cellsDone int
	launch, launches int
}

// Do executes the plan and returns the run folder; it is empty if an error came before the first launch. The error is a
// missing part, a record that can't be written, or a cancellation; or of failed launches and refused cells, the one
// whose exit code has priority.
func Do(ctx context.Context, o Options) (dir string, err error) {
	r := &runner{Options: o, past: &past{State: &record.State{Run: &record.Run{Status: record.Interrupted}}}}
	if r.Progress == nil {
		r.Progress = func(Event) {}
	}
	if err := r.look(); err != nil {
		return "", err
	}
	if r.past.whole(r) {
		return r.Resume, r.past.failure(r)
	}
	one, err := r.only(ctx)
	if err != nil {
		return "", err
	}
	if r.Resume == "" {
		if err := record.Writable(r.Out); err != nil {
			return "", err
		}
	}
	env, err := r.describe(ctx, one)
	defer r.gpus.Close()
	if err != nil {
		return "", err
	}
	if err := r.open(env); err != nil {
		return "", err
	}
	err = r.all(ctx, one)
	return r.w.Dir(), errors.Join(r.w.Close(r.status()), err)
}

// look completes the plan, counts launches, and reads the run to resume.
func (r *runner) look() (err error) {
	if r.Resume != "" {
		if r.past, err = r.scan(); err != nil {
			return err
		}
	} else if r.Plan.Order == plan.Shuffled { // not Plan.Seed: prompts and traffic have theirs already
		r.Plan.OrderSeed = cmp.Or(r.Plan.OrderSeed, r.Plan.Seed, newSeed())
	}
	if r.Plan.UntilCI != nil {
		if _, err := until.Awaited(*r.Plan.UntilCI); err != nil {
			return err
		}
	}
	r.count.cells, r.oneModel = len(r.Cells), true
	for _, s := range r.Setups {
		s.Plan.OrderSeed = r.Plan.OrderSeed
		for i := range s.Cells { // the plan of a resumed run has defaults that were not requested
			if was, there := r.past.Cell(s.Cells[i].ID); there {
				s.Cells[i].DType, s.Cells[i].Threads, s.Cells[i].Settings = was.DType, was.Threads, was.Settings
			}
		}
		r.count.launches += launchesOf(s)
		r.oneModel = r.oneModel && s.Plan.Model == r.Setups[0].Plan.Model
	}
	return nil
}

// newSeed returns a random seed that is short enough to type.
func newSeed() uint64 { return uint64(rand.Uint32()) | 1 }

// only builds the setup of a plan with a single setup, so that its errors come before there is a run folder.
func (r *runner) only(ctx context.Context) (s *current, err error) {
	if len(r.Setups) != 1 {
		return nil, nil
	}
	if s, err = r.build(ctx, r.Setups[0]); err == nil {
		err = s.alive(r.check(ctx, s))
	}
	return s, err
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
		c.Model.Context, c.Model.File = s.Plan.Context, s.Plan.Model
		c.Isolation, c.PromptCache = caps.Isolation, record.CacheOff
		c.StopsAtEnd, c.NoTokenIDs, c.Pieces, c.PerGeneration = !caps.IgnoreEOS, !caps.TokenIDs, !caps.Exact,
			caps.PerGeneration
		if caps.PromptCache {
			c.PromptCache = record.CacheOn
		}
	}
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

// of returns an engine's cells that may run.
func (s *current) of(e engine.Engine) []*series {
	return slices.DeleteFunc(slices.Clone(s.cells), func(c *series) bool { return c.engine != e || c.gaveUp != nil })
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

// alive returns err, or the reason if none of a setup's cells can run.
func (s *current) alive(err error) error {
	if err != nil || slices.ContainsFunc(s.cells, func(c *series) bool { return c.gaveUp == nil }) {
		return err
	}
	return s.cells[0].gaveUp
}

// describe describes the machine while the engines of the only setup prepare.
func (r *runner) describe(ctx context.Context, one *current) (env record.Environment, err error) {
	var machines sync.WaitGroup
	machines.Go(func() {
		env = machine.Describe(ctx, heard, []machine.Folder{{Role: "results", Path: r.Out},
			{Role: "cache", Path: cache.Dir(os.Getenv)}, {Role: "temporary", Path: os.TempDir()}}...)
	})
	machines.Go(func() { r.gpus = gpu.Open(ctx, r.GPU) }) // drivers can take seconds to wake up
	if one != nil {
		err = one.alive(r.prepare(ctx, one))
	}
	machines.Wait()
	env.GPUs = r.gpus.GPUs
	env.Load1 = machine.Load1(ctx) // after preparing
	return env, err
}

// heard is how long to observe the load from other processes.
const heard = 200 * time.Millisecond

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

// open creates the run folder, or reopens it.
func (r *runner) open(env record.Environment) error {
	begin := r.create
	if r.Resume != "" {
		begin = r.reopen
	}
	if err := begin(env); err != nil {
		return err
	}
	r.Progress(Event{Kind: Recording, Text: r.w.Dir()})
	for _, warning := range append(unfit(env), r.gpus.Warnings...) {
		r.w.Warn(warning)
	}
	return nil
}

func (r *runner) create(env record.Environment) error {
	text, err := r.Plan.YAML()
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	r.w, err = record.Create(r.Out, record.Meta{Name: r.Plan.Name, Started: time.Now(), Tool: r.Tool,
		Plan: sumOf(text), Against: r.against, Side: r.Side, DefaultEngines: r.unasked(), Reference: r.Reference}, env,
		text)
	return err
}

// sumOf returns the hash by which a plan is recognised.
func sumOf(plan []byte) string { return fmt.Sprintf("%x", sha256.Sum256(plan)) }

// unasked returns the engines from a default list.
func (r *runner) unasked() (out []string) {
	for _, s := range r.Setups {
		for _, e := range s.Plan.Engines {
			if r.optional(e) && !slices.Contains(out, e) {
				out = append(out, e)
			}
		}
	}
	return out
}

func (r *runner) optional(engine string) bool { return r.Optional != nil && r.Optional(engine) }

// unfit warns of properties of the machine that make figures doubtful.
func unfit(env record.Environment) []record.Warning {
	var out []record.Warning
	if busy := float64(env.Cores) / 2; env.Load1 > busy {
		out = append(out, record.Warnf("noisy-machine", "load average was %.1f on %d cores before the run; speeds "+
			"may be too low", env.Load1, env.Cores))
	}
	if env.Memory == nil {
		return out
	}
	for _, r := range env.Memory.Reclaimers {
		if r.Some { // it acts on processes that were chosen before the run
			continue
		}
		verb, idle, in := "reclaims", "", ""
		if r.Hidden {
			verb = "may reclaim"
		}
		if r.IdleS > 0 {
			idle, in = fmt.Sprintf(" after %g s", r.IdleS), " in longer launches"
		}
		return append(out, record.Warnf("memory-reclaimed", "the kernel %s idle memory%s (%s); RSS and PSS can read "+
			"low%s", verb, idle, r.By, in))
	}
	return out
}

func (r *runner) status() record.Status {
	switch {
	case r.cancelled:
		return record.Interrupted
	case r.failed:
		return record.Failed
	}
	return record.OK
}
