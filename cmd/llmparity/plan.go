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

// plan reads the plan or preset and applies the flags. Afterwards f has the plan's settings of engines.
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
			return plan.Plan{}, fault.Wrap(fault.Usage, err, "", "cannot read the plan")
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
		return plan.Plan{}, fault.Wrap(fault.Usage, err, "", "the plan with these flags")
	}
	return p, f.follow(p, given)
}

// follow checks a plan's engines and takes their settings.
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

// askedFor returns whether the user asked for an engine: by its name, or by a flag that only it has.
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

// enginesIn are all engines of a plan, including those of single models.
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

// sound refuses flags that contradict each other in any plan.
func (f *runFlags) sound(given func(string) bool) error {
	for _, one := range []struct{ flag, list string }{{"model", "models"}, {"max-tokens", "output-len"},
		{"max-tokens", "gen-toks"},
		{"context", "contexts"}, {"threads", "thread-counts"}, {"prompt", "input-len"}, {"prompt", "prompt-toks"},
		{"prompt", "seqlens"}} {
		if given(one.flag) && given(one.list) {
			return fault.New(fault.Usage, "use one of them", "--%s and --%s set the same thing", one.flag, one.list)
		}
	}
	return f.valid(given)
}

// change applies the flags to the plan. A field replaces those that exclude it.
func (f *runFlags) change(p *plan.Plan, given func(string) bool) error {
	f.presetFlags.change(p)
	for flag, set := range map[string]func(){
		"engines":      func() { p.Engines = slices.Concat(f.engines, f.engine) },
		"engine":       func() { p.Engines = slices.Concat(f.engines, f.engine) },
		"model":        func() { p.Model, p.Models = f.model, nil },
		"prompt":       func() { p.Prompts, p.InputLengths = plan.Texts(f.prompts...), nil },
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

// complete writes defaults into the plan, so that it repeats the run.
func (f *runFlags) complete(p *plan.Plan, m engine.Model) {
	if p.Isolation == "" {
		p.Isolation = plan.OfLaunch
	}
	f.engineFlags.complete(p, m)
	packaged := m.Format == model.WebLLM || m.Format == record.Served // these have their own dtype
	if !packaged && !isAxis(*p, func(x plan.Axes) int { return len(x.DTypes) }) {
		p.DType = f.chosen().Settings.DType
	}
}

// isAxis reports whether a plan, or a model of it, has a list for an axis.
func isAxis(p plan.Plan, of func(plan.Axes) int) bool {
	return of(p.Axes) > 0 || slices.ContainsFunc(p.Models, func(g plan.Group) bool { return of(g.Axes) > 0 })
}

// completeAll writes the defaults of the first setup that can run into the plan. Axes are left out.
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
	"context window in tokens; 0: the model's maximum (default %d, or the model's maximum if smaller)", resolve.MaxUnasked)
