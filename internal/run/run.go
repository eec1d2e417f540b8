// Package run carries out a plan: in which order engines are launched, through which phases a launch goes, what is
// sampled meanwhile, and that all of it reaches the record.
//
// It knows engines by their interface only. Setups are carried out one after the other; each is built when its turn
// comes, and its cells' launches take turns. A launch that fails is recorded with its class and the rest goes on; what
// a user must mend first (a missing part, a prompt that doesn't fit) ends its cell, and what is wrong with one setup of
// several ends that. The run's folder is its state: whatever ends a run, it can be resumed, and makes what is
// missing then and only that.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// Options is what a run needs.
type Options struct {
	Plan plan.Plan
	// Setups makes what carries a setup out, when its turn comes; the function that it gives ends that when the setup
	// is over, and may be nil. What is wrong with one setup of several fails its cells, and the rest goes on.
	Setups func(context.Context, plan.Setup) (Setup, func(), error)
	Parts  // carry out every setup where Setups is nil
	// Optional tells of an engine, by its name in records, that it was not asked for by name: that it can't run fails
	// nothing; nil: none is.
	Optional func(engine string) bool
	Strict   bool // launch nothing where an engine of the only setup can't run

	Out      string // the folder that holds run folders
	Tool     record.Tool
	Progress Progress
	Profiles Profiles
	GPU      gpu.Options // where GPUs are looked for

	Resume       string // a run's folder, which is resumed: what is missing in it is made, and only that
	RetryFailed  bool   // of a run that is resumed, failed attempts are made again
	AllowChanged bool   // go on although the program, an engine or a browser is another one than before

	// Turn is called before each launch and returns when that may begin; nil: at once. Its error ends the run as a
	// cancellation does.
	Turn    func(context.Context) error
	against string // the folder of the run that this one's launches take turns with, and that it is held against
}

// runner carries a run out.
type runner struct {
	Options
	w        *record.Writer
	gpus     *gpu.Monitor
	past     *past
	count    counts       // of the whole run
	live     *live        // what the next attempt goes on in; nil: it opens a session of its own
	oneModel bool         // of all setups: ids of tokens mean the same in all
	opened   bool         // there was a launch, after which one cools down
	memory   atomic.Int64 // of the processes that are read, at the last reading
	// What became of launches: what only scored is none, and a run is whole without it.
	cancelled, failed bool
	first             error // of what went wrong, by fault.First
}

// counts is how many there are of what a run makes, and how many of them are behind it.
type counts struct {
	setups, cells, cellsDone int
	launch, launches         int
}

// Do carries out the plan and gives the run folder; there is none where an error came before the first launch. The
// error is the first of: a part that is missing, a record that can't be written, a cancellation; of launches that
// failed and cells that were refused it is the one whose exit code goes before the others'.
func Do(ctx context.Context, o Options) (dir string, err error) {
	r := &runner{Options: o, past: noPast()}
	if r.Progress == nil {
		r.Progress = func(Event) {}
	}
	if err := r.look(); err != nil {
		return "", err
	}
	if r.past.whole(r) {
		return r.Resume, r.past.failure()
	}
	one, done, err := r.only(ctx)
	defer done()
	if err != nil {
		return "", err
	}
	if err := r.writable(); err != nil {
		return "", err
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

// look settles what the plan leaves open, counts what there is to do, and looks at what was done of it.
func (r *runner) look() (err error) {
	if r.Resume != "" {
		if r.past, err = r.scan(); err != nil {
			return err
		}
	} else if r.Plan.Order == plan.Shuffled && r.Plan.Seed == 0 {
		r.Plan.Seed = newSeed()
	}
	if r.Plan.UntilCI != nil {
		if _, err := awaited(*r.Plan.UntilCI); err != nil {
			return err
		}
	}
	if r.count.setups, r.count.cells, err = r.Plan.Count(); err != nil {
		return err
	}
	models := map[string]bool{}
	for s := range r.Plan.Setups() {
		r.count.launches += launchesOf(s)
		models[s.Plan.Model] = true
	}
	r.oneModel = len(models) == 1
	r.past.look(r)
	return nil
}

// only builds the setup of a plan that has but one: what is wrong with it is said before there is a folder.
func (r *runner) only(ctx context.Context) (s *current, done func(), err error) {
	if r.count.setups != 1 {
		return nil, func() {}, nil
	}
	for planned := range r.Plan.Setups() {
		if s, done, err = r.build(ctx, planned, 1); err == nil {
			err = r.alive(s, r.check(ctx, s, r.gives(ctx, s)))
		}
	}
	return s, done, err
}

// describe looks at the machine while the only setup's engines prepare.
func (r *runner) describe(ctx context.Context, one *current) (env record.Environment, err error) {
	machine := make(chan record.Environment, 1)
	go func() { machine <- Environment(ctx, r.Out) }() // it listens a while to what else goes on
	gpus := make(chan *gpu.Monitor, 1)
	go func() { gpus <- gpu.Open(ctx, r.GPU) }() // a driver that slept takes seconds to wake
	if one != nil {
		err = r.alive(one, r.prepare(ctx, one, r.gives(ctx, one)))
	}
	env = <-machine
	r.gpus = <-gpus
	env.GPUs = r.gpus.GPUs()
	env.Load1 = load1(ctx) // behind what was prepared
	return env, err
}

func (r *runner) writable() error {
	if r.Resume != "" {
		return nil
	}
	return record.Writable(r.Out)
}

// open makes the run's folder, or resumes it.
func (r *runner) open(env record.Environment) error {
	var err error
	if r.Resume != "" {
		err = r.reopen(env)
	} else {
		err = r.create(env)
	}
	if err != nil {
		return err
	}
	r.Progress(Event{Kind: Recording, Text: r.w.Dir()})
	for _, warning := range append(unfit(env), r.gpus.Warnings()...) {
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

// unasked are the engines that came from a default list.
func (r *runner) unasked() (out []string) {
	for s := range r.Plan.Setups() {
		for _, e := range s.Plan.Engines {
			if r.optional(e) && !slices.Contains(out, e) {
				out = append(out, e)
			}
		}
	}
	return out
}

// all carries out every setup. What went wrong first is its error.
func (r *runner) all(ctx context.Context, one *current) error {
	ctx, cancel := r.within(ctx)
	defer cancel()
	r.announce(one)
	from := 1
	for planned := range r.Plan.Setups() {
		err := r.setup(ctx, planned, from, one)
		from += planned.Cells()
		if r.w.Err() != nil {
			return nil // Close tells it
		}
		if r.cancelled {
			return err
		}
		r.note(err)
	}
	if err := r.past.failure(); err != nil {
		r.failed = true
		r.note(err)
	}
	return r.first
}

func (r *runner) note(err error) {
	r.first = fault.First(r.first, err)
}

// within gives the run's time. What can't be recorded need not be measured to its end, either.
func (r *runner) within(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	if limit := time.Duration(r.Plan.RunTimeout); limit > 0 {
		over := &runTimeout{fault.New(fault.Run, "go on with it: llmparity run --resume "+r.w.Dir(),
			"the run took longer than the %s that its plan gives it", limit)}
		limited, free := context.WithTimeoutCause(ctx, limit, over)
		stop := cancel
		ctx, cancel = limited, func() { free(); stop() }
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

// runTimeout is why attempts are cut off when the run's time is over.
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
