package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"llmparity/assets/plans"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/kit/words"
)

func planCommand() *cobra.Command {
	c := parent("plan", "Create or check a plan", &cobra.Command{
		Use:     "init [FILE]",
		Short:   "Write a commented plan to a new file, or print it",
		Example: "  llmparity plan init my-plan.yaml\n  llmparity plan init",
		Args:    arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := c.OutOrStdout().Write(plans.Init)
				return err
			}
			if err := beginPlan(args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "Wrote %s. Edit it, then: llmparity run %s --dry-run\n",
				args[0], args[0])
			return err
		},
	}, &cobra.Command{
		Use:   "check FILE",
		Short: "Check a plan: count its cells, or name the line that is wrong",
		Long: `Check a plan: count its cells, or name the line that is wrong. To also check what can run on this
machine, use llmparity run FILE --dry-run. Fields: docs/howto/write-a-plan.md`,
		Example: "  llmparity plan check my-plan.yaml\n  llmparity plan check results/latest/plan.yaml",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := readPlan(args[0])
			if err != nil {
				return err
			}
			if err := kinds.All.Known(enginesIn(p)); err != nil {
				return err
			}
			r, err := resolve.New(p, resolve.Means{})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s, %s\n", p.Name, words.Count(len(r.Cells), "cell"),
				words.Count(len(r.Setups), "start setting"))
			return err
		},
	})
	c.Example = "  llmparity plan init my-plan.yaml\n  llmparity plan check my-plan.yaml"
	return c
}

// beginPlan writes a plan to a new file.
func beginPlan(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Usage, "choose another name", "%s exists", path)
	}
	if err == nil {
		_, err = f.Write(plans.Init)
		err = errors.Join(err, f.Close())
	}
	return writeFault(err, path)
}

// readPlan reads the plan in a file.
func readPlan(path string) (plan.Plan, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		do := ""
		if errors.Is(err, fs.ErrNotExist) {
			do = fmt.Sprintf("\"llmparity plan init %s\" writes one", path)
			if !planFile.MatchString(path) {
				do = "a plan is a YAML file; a model is named by --model"
			}
		}
		return plan.Plan{}, fault.Wrap(fault.Usage, err, do, "cannot read the plan")
	}
	return plan.Parse(text, path, kinds.All...)
}

// plan reads the plan or preset and applies the flags. Afterwards f has the plan's settings of engines.
func (f *runFlags) plan(c *cobra.Command, args []string) (plan.Plan, error) {
	given := c.Flags().Changed
	if err := f.sound(given); err != nil {
		return plan.Plan{}, err
	}
	if err := f.presetFlags.check(given, args); err != nil {
		return plan.Plan{}, err
	}
	read := f.presetFlags.builtIn
	if len(args) == 1 {
		read = func() (plan.Plan, error) { return readPlan(args[0]) }
	}
	p, err := read()
	if err != nil {
		return plan.Plan{}, err
	}
	p.DefaultEngines = p.DefaultEngines || len(args) == 0
	was, err := p.YAML()
	if err != nil {
		return plan.Plan{}, err
	}
	if err := f.change(&p, given); err != nil {
		return plan.Plan{}, err
	}
	if is, err := p.YAML(); err != nil || !bytes.Equal(was, is) {
		p.Moved()
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
	// Files that flags name must be there. Those that a plan names are checked when it runs.
	for _, k := range kinds.All.Sections() {
		if c, ok := f.chosen().Config(k).(interface{ CheckFiles() error }); ok {
			if err := c.CheckFiles(); err != nil {
				return err
			}
		}
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
			shared := slices.ContainsFunc(kinds.All, func(o *engine.Kind) bool { return o != k && o.Uses(flag) })
			return given(flag) && !shared
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
		{"max-tokens", "gen-toks"}, {"context", "contexts"}, {"threads", "thread-counts"},
		{"prompt", "input-len"}, {"prompt", "prompt-toks"}, {"prompt", "seqlens"}} {
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
		"engines":         func() { p.Engines = slices.Concat(f.engines, f.engine) },
		"engine":          func() { p.Engines = slices.Concat(f.engines, f.engine) },
		"model":           func() { p.Model, p.Models = f.model, nil },
		"prompt":          func() { p.Prompts, p.InputLengths = plan.Texts(f.prompts...), nil },
		"context":         func() { p.Context, p.Contexts = f.context, nil },
		"max-tokens":      func() { p.MaxTokens, p.OutputLengths = f.maxTokens, nil },
		"no-check-oom":    func() { p.CheckOOM = new(!f.noCheckOOM) },
		"allow-fallback":  func() { p.AllowFallback = f.allowFallback },
		"no-check":        func() { p.Check = new(!f.noCheck) },
		"check-reference": func() { p.CheckReference = f.checkReference },
		"chat":            func() { p.Chat = f.chat },
		"parity":          func() { p.Parity = new(f.parity) },
		"threads":         func() { p.Threads, p.ThreadCounts = f.threads, nil },
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
	if given(referenceFlag) {
		if err := p.Refer(f.reference); err != nil {
			return fault.Wrap(fault.Usage, err, "", "--%s", referenceFlag)
		}
	}
	if err := f.axisFlags.change(p, given); err != nil {
		return err
	}
	f.onDevices(p, given)
	return nil
}

// referenceFlag names the cell that others are compared with.
const (
	referenceFlag = "reference-cell"
	referenceHelp = "cell that others are compared with, by values of axes, e.g. webllm_version=0.2.86 or model=FILE " +
		"(default: the first value of each axis, and the first native engine)"
)

// isAxis reports whether a plan, or a model of it, has a list for an axis.
func isAxis(p plan.Plan, of func(plan.Axes) int) bool {
	return of(p.Axes) > 0 || slices.ContainsFunc(p.Models, func(g plan.Group) bool { return of(g.Axes) > 0 })
}
