// Package run carries out a plan: in which order engines are launched, through which phases a launch goes, what is sampled
// meanwhile, and that all of it reaches the record.
//
// It knows engines by their interface only. Setups are carried out one after the other; each is built when its turn comes, and its cells'
// launches take turns. A launch that fails is recorded with its class and the rest goes on; what a user must mend first (a missing part,
// a prompt that doesn't fit) ends its cell.
package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// Options is what a run needs.
type Options struct {
	Plan plan.Plan
	// Setups makes what carries a setup out, when its turn comes; the function that it gives ends that when the setup is over, and may be
	// nil. What is wrong with one setup of several fails its cells, and the rest goes on.
	Setups func(context.Context, plan.Setup) (Setup, func(), error)
	Parts  // carry out every setup where Setups is nil

	Out      string // the folder that holds run folders
	Tool     record.Tool
	Progress Progress
	Profiles Profiles
	GPU      gpu.Options // where GPUs are looked for

	Resume       string // a run's folder, which is gone on with: what is missing in it is made, and only that
	RetryFailed  bool   // of a run that is gone on with, failed attempts are made again
	AllowChanged bool   // go on although the program, an engine or a browser is another one than before
}

// runner carries a run out.
type runner struct {
	Options
	w      *record.Writer
	gpus   *gpu.Monitor
	setups int64 // how many there are
	live   *live // what the next attempt goes on in; nil: it opens a session of its own
	launch int   // the last one's number
	// What became of launches: what only scored is none, and a run is whole without it.
	cancelled, failed bool
}

// Do carries out the plan and gives the run folder; there is none where an error came before the first launch. The error
// is the first of: a part that is missing, a record that can't be written, a cancellation, a launch that failed.
func Do(ctx context.Context, o Options) (dir string, err error) {
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	r := &runner{Options: o, setups: 1}
	s, done, err := o.build(ctx, only(o.Plan))
	defer done()
	if err != nil {
		return "", err
	}
	one, err := r.ready(ctx, s, 1)
	if err != nil {
		return "", err
	}
	if err := record.Writable(o.Out); err != nil {
		return "", err
	}
	machine := make(chan record.Environment, 1)
	go func() { machine <- Environment(ctx, o.Out) }() // it listens a while to what else goes on
	gpus := make(chan *gpu.Monitor, 1)
	go func() { gpus <- gpu.Open(ctx, o.GPU) }() // a driver that slept takes seconds to wake
	err = r.prepare(ctx, one)
	env := <-machine
	r.gpus = <-gpus
	defer r.gpus.Close()
	if err != nil {
		return "", err
	}
	env.GPUs = r.gpus.GPUs()
	env.Load1 = load1(ctx) // behind what was prepared
	if err := r.create(env); err != nil {
		return "", err
	}
	err = r.carryOut(ctx, one)
	status := record.OK
	switch {
	case r.cancelled:
		status = record.Interrupted
	case r.failed:
		status = record.Failed
	}
	return r.w.Dir(), errors.Join(r.w.Close(status), err)
}

// create makes the run's folder.
func (r *runner) create(env record.Environment) error {
	text, err := r.Plan.YAML()
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	r.w, err = record.Create(r.Out, record.Meta{Name: r.Plan.Name, Started: time.Now(), Tool: r.Tool}, env, text)
	if err != nil {
		return err
	}
	r.Progress(Event{Kind: Recording, Text: r.w.Dir()})
	for _, warning := range append(unfit(env), r.gpus.Warnings()...) {
		r.w.Warn(warning)
	}
	return nil
}
