// Package run carries out a plan: in which order engines are launched, through which phases a launch goes, what is sampled
// meanwhile, and that all of it reaches the record.
//
// It knows engines by their interface only. A launch that fails is recorded with its class and the rest goes on; what a user
// must mend first (a missing part, a prompt that doesn't fit) ends its cell.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/sample/gpu"
)

// Options is what a run needs.
type Options struct {
	Plan     plan.Plan
	Engines  []engine.Engine // in the plan's order
	Model    engine.Model
	Out      string // the folder that holds run folders
	Tool     record.Tool
	Progress Progress
	Profiles Profiles
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
	GPU    gpu.Options // where GPUs are looked for
	// Foretell says what a cell's memory will be, once its engine has prepared; nil: nothing is foretold.
	Foretell func(context.Context, record.Cell) record.Prediction
	// Judge says whether what was foretold fits into what is free now, on a machine with these GPUs; nil: it is not judged.
	Judge func(context.Context, record.Prediction, *gpu.Monitor) record.Risk

	gpus      *gpu.Monitor
	reference string
}

// Do carries out the plan and gives the run folder; there is none where an error came before the first launch. The error
// is the first of: a part that is missing, a record that can't be written, a cancellation, a launch that failed.
func Do(ctx context.Context, o Options) (dir string, err error) {
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	if err := reusable(o); err != nil {
		return "", err
	}
	for _, e := range o.Engines {
		if err := e.Check(ctx, o.Model); err != nil {
			return "", err
		}
	}
	if o.Reference != nil {
		if o.reference, err = o.Reference(); err != nil {
			return "", err
		}
	}
	if err := record.Writable(o.Out); err != nil {
		return "", err
	}
	machine := make(chan record.Environment, 1)
	go func() { machine <- Environment(ctx, o.Out) }() // it listens a while to what else goes on
	gpus := make(chan *gpu.Monitor, 1)
	go func() { gpus <- gpu.Open(ctx, o.GPU) }() // a driver that slept takes seconds to wake
	err = prepare(ctx, o)
	env := <-machine
	o.gpus = <-gpus
	defer o.gpus.Close()
	if err != nil {
		return "", err
	}
	env.GPUs = o.gpus.GPUs()
	env.Load1 = load1(ctx) // behind what was prepared
	text, err := o.Plan.YAML()
	if err != nil {
		return "", fmt.Errorf("writing the plan: %w", err)
	}
	w, err := record.Create(o.Out, record.Meta{Name: o.Plan.Name, Started: time.Now(), Tool: o.Tool}, env, text)
	if err != nil {
		return "", err
	}
	o.Progress(Event{Kind: Recording, Text: w.Dir()})
	for _, warning := range append(unfit(env), o.gpus.Warnings()...) {
		w.Warn(warning)
	}
	all := cells(o)
	err = launches(ctx, o, w, all)
	status := record.OK
	switch {
	case ctx.Err() != nil:
		status = record.Interrupted
	case err != nil:
		status = record.Failed
	}
	if ctx.Err() == nil {
		scoreAll(ctx, o, w, all)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx) // the run is whole all the same
		}
	}
	if o.Pieces != nil {
		w.Pieces(o.Pieces(seen(all)))
	}
	return w.Dir(), errors.Join(w.Close(status), err)
}

// reusable refuses to reuse launches of engines that have none but a generation's.
func reusable(o Options) error {
	for _, e := range o.Engines {
		if o.Plan.Isolation == plan.Reused && e.Caps().PerGeneration {
			return fault.New(fault.Usage, "leave it out, or use --isolation launch",
				"%s starts a process for each generation: there is no launch that repetitions could reuse (--isolation "+
					"reused)", e.Name())
		}
	}
	return nil
}

// prepare makes what is cached, so that no launch is measured while something compiles.
func prepare(ctx context.Context, o Options) error {
	for _, e := range o.Engines {
		if p, ok := e.(engine.Preparer); ok {
			err := p.Prepare(ctx, o.Model, func(what string) { o.Progress(Event{Kind: Preparing, Engine: e.Name(), Text: what}) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// cell is a cell with the engine that carries it out.
type cell struct {
	record.Cell
	engine engine.Engine
	given  error // why its launches are given up
	judged bool
	memory record.Prediction
	live   *live // what the next repetition goes on in; nil: it opens a session of its own
	likely []int // tokens that it would have said, or nearly, when it scored
	said   *said // what its first launch that counts generated; nil: there is none, or no ids are known of it
}

// cells come prompt by prompt.
func cells(o Options) []*cell {
	var out []*cell
	for i, prompt := range o.Plan.Prompts {
		for _, e := range o.Engines {
			m := o.Model.Model
			m.Context = o.Plan.Context
			caps := e.Caps()
			c := record.Cell{
				ID: len(out) + 1, Engine: e.Name(), Model: m, PromptID: i + 1, Prompt: prompt, MaxTokens: o.Plan.MaxTokens,
				Temperature: o.Plan.Temperature, Repetitions: o.Plan.Repetitions, Isolation: caps.Isolation,
				Reused: o.Plan.Isolation == plan.Reused, PromptCache: record.CacheOff,
				StopsAtEnd: !caps.IgnoreEOS, NoTokenIDs: !caps.TokenIDs, Pieces: !caps.Exact, PerGeneration: caps.PerGeneration,
			}
			if caps.PromptCache {
				c.PromptCache = record.CacheOn
			}
			out = append(out, &cell{engine: e, Cell: c})
		}
	}
	return out
}

// turn is an attempt that is to be made.
type turn struct {
	*cell
	warmup     bool
	repetition int // 0 for a warm-up launch
	last       bool
}

// turns puts attempts in order: the cells in turn, repetition by repetition, so that a machine that slows down slows all
// engines. Where sessions are reused one cell comes after the other: what another's idle session holds would divide the pages
// that both share, and so be in PSS.
func turns(o Options, all []*cell) []turn {
	groups := [][]*cell{all}
	if o.Plan.Isolation == plan.Reused {
		groups = slices.Collect(slices.Chunk(all, 1))
	}
	var out []turn
	rounds := o.Plan.Warmup.Launches + o.Plan.Repetitions
	for _, group := range groups {
		for round := range rounds {
			for _, c := range group {
				t := turn{cell: c, warmup: round < o.Plan.Warmup.Launches, last: round == rounds-1}
				if !t.warmup {
					t.repetition = round - o.Plan.Warmup.Launches + 1
				}
				out = append(out, t)
			}
		}
	}
	return out
}

// launches makes every attempt.
func launches(ctx context.Context, o Options, w *record.Writer, all []*cell) error {
	// What can't be recorded need not be measured to its end.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.Failed():
			cancel()
		case <-ctx.Done():
		}
	}()
	for _, c := range all {
		w.Cell(c.Cell)
		defer c.close()
	}
	foretellAll(ctx, o, w, all)
	var first error
	order := turns(o, all)
	for i, t := range order {
		c, n := t.cell, i+1
		if c.given != nil {
			continue
		}
		say := func(e Event) {
			e.Launch, e.Launches = n, len(order)
			e.Engine, e.Repetition, e.Repetitions, e.Warmup = c.Engine, t.repetition, o.Plan.Repetitions, t.warmup
			o.Progress(e)
		}
		if err := c.judge(ctx, o, w, say); err != nil {
			c.giveUp(err)
			if first == nil {
				first = fmt.Errorf("%s: %w", c.Engine, err)
			}
			continue
		}
		say(Event{Kind: Launched})
		err := t.attempt(ctx, o, w, say)
		if w.Err() != nil {
			return nil // Close tells it
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			c.giveUp(err)
			if first == nil {
				first = fmt.Errorf("%s, launch %d: %w", c.Engine, n, err)
			}
		}
	}
	return first
}

// attempt makes one, in the session that the cell has open, if it has one.
func (t turn) attempt(ctx context.Context, o Options, w *record.Writer, say func(Event)) (err error) {
	c := t.cell
	a := attempt{options: o, cell: c, dir: w.Dir(), say: say, live: c.live,
		keep: o.Plan.Isolation == plan.Reused && !t.warmup && !t.last}
	c.live = nil // the attempt's now, which closes it if it fails
	if a.live != nil {
		a.rec = w.Rejoin(a.live.opener, c.Cell, t.repetition, load1(ctx))
	} else {
		a.rec = w.Begin(c.Cell, t.repetition, t.warmup, load1(ctx))
	}
	c.live, err = a.run(ctx)
	if err == nil && !t.warmup && c.said == nil {
		c.said = a.said
	}
	return err
}

// close ends what is still open: the run ended before the cell's last repetition.
func (c *cell) close() {
	if c.live != nil {
		c.live.sampler.Stop()
		_ = c.live.close() // its attempts are recorded
		c.live = nil
	}
}

// giveUp keeps a cell from failing again and again for a reason that a person must remove.
func (c *cell) giveUp(err error) {
	var f *fault.Error
	if errors.As(err, &f) {
		c.given = err
	}
}
