package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/model"
	"llmparity/internal/plan"
	"llmparity/internal/progress"
	"llmparity/internal/record"
	"llmparity/internal/resolve"
)

// plan reads the plan, or makes a preset's, and lets the flags that were given change it. What it says of engines is in
// f afterwards.
func (f *runFlags) plan(c *cobra.Command, args []string) (plan.Plan, error) {
	given := c.Flags().Changed
	if err := f.sound(given); err != nil {
		return plan.Plan{}, err
	}
	if err := f.presetFlags.check(given, args); err != nil {
		return plan.Plan{}, err
	}
	text, name := f.presetFlags.text()
	if len(args) == 1 {
		var err error
		if text, err = os.ReadFile(args[0]); err != nil {
			return plan.Plan{}, fault.Wrap(fault.Usage, err, "", "the plan can't be read")
		}
		name = args[0]
	}
	p, err := plan.Parse(text, name, kinds.All...)
	if err != nil {
		return plan.Plan{}, err
	}
	p.DefaultEngines = p.DefaultEngines || len(args) == 0
	if err := f.change(&p, given); err != nil {
		return plan.Plan{}, err
	}
	f.byName = askedFor(p, given)
	if err := p.Validate(); err != nil {
		return plan.Plan{}, fault.Wrap(fault.Usage, err, "", "the plan, as the flags changed it")
	}
	return p, f.follow(p, given)
}

// follow takes what a plan says of engines.
func (f *runFlags) follow(p plan.Plan, given func(string) bool) error {
	engines := enginesIn(p)
	if err := kinds.All.Known(engines); err != nil {
		return err
	}
	if err := kinds.All.Used(engines, given); err != nil {
		return err
	}
	if err := f.files(); err != nil {
		return err
	}
	f.engineFlags.follow(p)
	return nil
}

// askedFor tells of an engine whether the user asked for it: by its name, or by a flag that is for it alone.
func askedFor(p plan.Plan, given func(string) bool) func(engine string) bool {
	all := !p.DefaultEngines || given("engines") || given("engine")
	return func(name string) bool {
		k, _ := kinds.All.Of(name)
		return all || k != nil && slices.ContainsFunc(k.Flags(), func(flag string) bool {
			others := 0
			for _, o := range kinds.All {
				if o != k && o.Heeds(flag) {
					others++
				}
			}
			return others == 0 && given(flag)
		})
	}
}

// enginesIn are all that a plan names, for all its models or for one.
func enginesIn(p plan.Plan) []string {
	out := slices.Clone(p.Engines)
	for _, g := range p.Models {
		for _, e := range g.Engines {
			if !slices.Contains(out, e) {
				out = append(out, e)
			}
		}
	}
	return out
}

// sound refuses flags that make no sense, whatever the plan is.
func (f *runFlags) sound(given func(string) bool) error {
	for _, one := range []struct{ flag, list string }{{"model", "models"}, {"max-tokens", "output-len"},
		{"max-tokens", "gen-toks"},
		{"context", "contexts"}, {"threads", "thread-counts"}, {"prompt", "input-len"}, {"prompt", "prompt-toks"},
		{"prompt", "seqlens"}} {
		if given(one.flag) && given(one.list) {
			return fault.New(fault.Usage, "give one of them", "--%s and --%s say the same thing", one.flag, one.list)
		}
	}
	return f.valid(given)
}

// change puts into the plan what flags say. One of two fields that exclude each other takes the other's place.
func (f *runFlags) change(p *plan.Plan, given func(string) bool) error {
	f.presetFlags.change(p)
	for flag, set := range map[string]func(){
		"engines":      func() { p.Engines = slices.Concat(f.engines, f.engine) },
		"engine":       func() { p.Engines = slices.Concat(f.engines, f.engine) },
		"model":        func() { p.Model, p.Models = f.model, nil },
		"prompt":       func() { p.Prompts, p.Sources, p.InputLengths = f.prompts, nil, nil },
		"context":      func() { p.Context, p.Contexts = f.context, nil },
		"max-tokens":   func() { p.MaxTokens, p.OutputLengths = f.maxTokens, nil },
		"no-check-oom": func() { p.CheckOOM = new(!f.noCheckOOM) },
		"parity":       func() { p.Parity = new(f.parity) },
		"threads":      func() { p.Threads, p.ThreadCounts = f.threads, nil },
	} {
		if given(flag) {
			set()
		}
	}
	f.engineFlags.change(p, given)
	if err := f.scheduleFlags.change(p, given); err != nil {
		return err
	}
	f.onlyHere(p, given)
	return f.axisFlags.change(p, given)
}

// complete writes into the plan what was chosen by default, so that the run can be repeated by it.
func (f *runFlags) complete(p *plan.Plan, m engine.Model) {
	if p.Isolation == "" {
		p.Isolation = plan.OfLaunch
	}
	f.engineFlags.complete(p, m)
	packaged := m.Format == model.WebLLM || m.Format == record.Served // it has a dtype of its own
	if !packaged && !isAxis(*p, func(x plan.Axes) int { return len(x.DTypes) }) {
		p.DType = f.chosen().Settings.DType
	}
}

// isAxis tells whether a plan has a list of an axis, for all its models or for one: it has no one value then.
func isAxis(p plan.Plan, of func(plan.Axes) int) bool {
	return of(p.Axes) > 0 || slices.ContainsFunc(p.Models, func(g plan.Group) bool { return of(g.Axes) > 0 })
}

// completeAll writes into a plan what was chosen by default in its first setup that can run, so that the run can be
// repeated by it. What is an axis, of all models or of one, has no one value.
func (f *runFlags) completeAll(of *resolve.Plan, show *progress.Progress) {
	s := of.First()
	if s == nil {
		return
	}
	if s.Plan.ContextNote != "" {
		show.Say("context", fmt.Sprintf("%d tokens %s", s.Plan.Context, s.Plan.ContextNote))
	}
	p := &of.Plan
	if len(of.Setups) == 1 && len(p.Contexts) == 0 {
		p.Context, p.ContextNote = s.Plan.Context, s.Plan.ContextNote
	}
	f.complete(p, s.Model)
}

var contextHelp = fmt.Sprintf(
	"the context window in tokens; 0: the model's own (default: the plan's, else the model's own, %d at most)",
	resolve.MaxUnasked)
