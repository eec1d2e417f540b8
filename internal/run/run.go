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
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
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
	// Expected is what the model says after each prompt, greedily, where that is known for certain; it may be shorter than what is
	// asked for. A launch that says something else has failed.
	Expected map[string][]int
}

// Do carries out the plan and gives the run folder; there is none where an error came before the first launch. The error
// is the first of: a part that is missing, a record that can't be written, a cancellation, a launch that failed.
func Do(ctx context.Context, o Options) (dir string, err error) {
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	for _, e := range o.Engines {
		if err := e.Check(ctx, o.Model); err != nil {
			return "", err
		}
	}
	if err := record.Writable(o.Out); err != nil {
		return "", err
	}
	if err := prepare(ctx, o); err != nil {
		return "", err
	}
	text, err := o.Plan.YAML()
	if err != nil {
		return "", fmt.Errorf("writing the plan: %w", err)
	}
	env := Environment(ctx)
	w, err := record.Create(o.Out, record.Meta{Name: o.Plan.Name, Started: time.Now(), Tool: o.Tool}, env, text)
	if err != nil {
		return "", err
	}
	o.Progress(Event{Kind: Recording, Text: w.Dir()})
	if busy := float64(env.Cores) / 2; env.Load1 > busy {
		w.Warn(record.Warning{Code: "noisy-machine", Text: fmt.Sprintf(
			"the machine was busy before the run: load average %.1f on %d cores; times and rates may be off", env.Load1, env.Cores)})
	}
	err = launches(ctx, o, w)
	status := record.OK
	switch {
	case ctx.Err() != nil:
		status = record.Interrupted
	case err != nil:
		status = record.Failed
	}
	return w.Dir(), errors.Join(w.Close(status), err)
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
}

func cells(o Options) []*cell {
	var out []*cell
	for i, prompt := range o.Plan.Prompts {
		for _, e := range o.Engines {
			m := o.Model.Model
			m.Context = o.Plan.Context
			out = append(out, &cell{engine: e, Cell: record.Cell{
				ID: len(out) + 1, Engine: e.Name(), Model: m, PromptID: i + 1, Prompt: prompt, MaxTokens: o.Plan.MaxTokens,
				Temperature: o.Plan.Temperature, Repetitions: o.Plan.Repetitions, Isolation: e.Caps().Isolation, PromptCache: "off",
			}})
		}
	}
	return out
}

// launches goes through the cells in turn, repetition by repetition, so that a machine that slows down slows all engines.
func launches(ctx context.Context, o Options, w *record.Writer) error {
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
	all := cells(o)
	for _, c := range all {
		w.Cell(c.Cell)
	}
	rounds := o.Plan.Warmup.Launches + o.Plan.Repetitions
	var first error
	n := 0
	for round := range rounds {
		for _, c := range all {
			n++
			if c.given != nil {
				continue
			}
			warmup := round < o.Plan.Warmup.Launches
			repetition := round - o.Plan.Warmup.Launches + 1
			if warmup {
				repetition = 0
			}
			say := func(e Event) {
				e.Launch, e.Launches = n, rounds*len(all)
				e.Engine, e.Repetition, e.Repetitions, e.Warmup = c.Engine, repetition, o.Plan.Repetitions, warmup
				o.Progress(e)
			}
			say(Event{Kind: Launched})
			a := attempt{options: o, cell: c, dir: w.Dir(), rec: w.Begin(c.Cell, repetition, warmup, load1(ctx)), say: say}
			err := a.run(ctx)
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
	}
	return first
}

// giveUp keeps a cell from failing again and again for a reason that a person must remove.
func (c *cell) giveUp(err error) {
	var f *fault.Error
	if errors.As(err, &f) {
		c.given = err
	}
}
