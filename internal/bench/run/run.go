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
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/score"
	"llmparity/internal/bench/until"
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
	Turn    func(context.Context) error
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
		Plan: sumOf(text), Against: r.against, DefaultEngines: r.unasked()}, env, text)
	return err
}

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

func (r *runner) status() record.Status {
	switch {
	case r.cancelled:
		return record.Interrupted
	case r.failed:
		return record.Failed
	}
	return record.OK
}

// heard is how long to observe the load from other processes.
const heard = 200 * time.Millisecond

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
