package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"llmparity/browser"
	"llmparity/cmd/llmparity/help"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/engine"
	"llmparity/internal/host/cache"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// engineFlags are the settings of engines, in every command that starts them.
type engineFlags struct {
	threads int
	dtype   string         // if the plan has none
	choice  *engine.Choice // from the flags, then from a plan
}

// chosen returns the engines with the settings known so far.
func (f *engineFlags) chosen() *engine.Choice {
	if f.choice == nil {
		f.choice = engine.NewChoice(kinds.All)
		f.choice.Settings.Cache = cache.Dir(os.Getenv)
	}
	return f.choice
}

// register defines a flag for each setting of an engine that is wanted.
func (f *engineFlags) register(flags *pflag.FlagSet, wanted func(engine.Field) bool) {
	f.dtype = "f32"
	for _, k := range kinds.All.Sections() {
		for _, field := range f.chosen().Config(k).Fields() {
			if field.Flag != "" && wanted(field) {
				addFlag(flags, k.Title, field.Flag, field.To, field.Help)
			}
		}
	}
}

// Which settings commands want: generate all of them, run all but axes of plans, doctor where
// programs are, convert how packages are made.
func ofRuns(engine.Field) bool       { return true }
func ofPlans(f engine.Field) bool    { return f.Flag != f.Axis }
func ofParts(f engine.Field) bool    { return !f.Run }
func ofPackages(f engine.Field) bool { return f.Make }

// shared is a flag of several engines, such as that of the browser: it sets a field of each.
type shared struct {
	pflag.Value
	also pflag.Value
}

// Set sets both.
func (s shared) Set(text string) error {
	if err := s.Value.Set(text); err != nil {
		return err
	}
	return s.also.Set(text)
}

// addFlag defines a flag for a value, under a heading. The first engine with a flag of this name describes it.
func addFlag(flags *pflag.FlagSet, title, name string, to any, usage string) {
	if have := flags.Lookup(name); have != nil {
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		addFlag(own, title, name, to, usage)
		have.Value = shared{have.Value, own.Lookup(name).Value}
		return
	}
	switch to := to.(type) {
	case *string:
		flags.StringVar(to, name, *to, usage)
	case *int:
		flags.IntVar(to, name, *to, usage)
	case *uint64:
		flags.Uint64Var(to, name, *to, usage)
	case *float64:
		flags.Float64Var(to, name, *to, usage)
	case *bool:
		flags.BoolVar(to, name, *to, usage)
	case *[]string:
		flags.StringArrayVar(to, name, *to, usage)
	case *plan.Duration:
		flags.DurationVar((*time.Duration)(to), name, time.Duration(*to), usage)
	}
	help.Under(flags, title, name)
}

// isPlace reports whether a flag only says where a part of an engine is.
func isPlace(flag string) bool {
	for _, k := range kinds.All.Sections() {
		for _, f := range k.Config().Fields() {
			if f.Place && f.Flag == flag {
				return true
			}
		}
	}
	return false
}

// valid refuses values that are wrong for any set of engines.
func (f *engineFlags) valid(given func(string) bool) error {
	fields := plan.Fields(kinds.All)
	for _, k := range kinds.All.Sections() {
		config := f.chosen().Config(k)
		if err := engine.CheckFlags(config, given); err != nil {
			return err
		}
		for _, field := range config.Fields() {
			same := func(f *plan.Field) bool { return f.List == field.Axis && f.Flag != field.Flag }
			i := slices.IndexFunc(fields, same)
			if i >= 0 && given(fields[i].Flag) && given(field.Flag) {
				axis := fields[i].Flag
				return fault.New(fault.Usage, "use one of them", "--%s and --%s set the same thing", axis, field.Flag)
			}
		}
	}
	if given("threads") && f.threads < 1 {
		return fault.New(fault.Usage, "", "--threads %d: must be at least 1", f.threads)
	}
	return nil
}

// change applies the flags to the plan.
func (f *engineFlags) change(p *plan.Plan, given func(string) bool) {
	for _, k := range kinds.All.Sections() {
		config := f.chosen().Config(k)
		said := engine.Given(config, p.Sections[k.Section], given)
		if said != nil && (p.Sections[k.Section] != nil || sectionRuns(*p, k)) {
			p.Say(k.Section, said)
		}
		for _, field := range config.Fields() {
			if field.Axis == k.VersionList() && given(field.Flag) {
				p.Unversion(k.VersionAxis)
			}
		}
	}
}

// sectionRuns reports whether a plan runs an engine of a kind's section: a shared flag is not for the others.
func sectionRuns(p plan.Plan, of *engine.Kind) bool {
	if len(p.Engines) == 0 {
		return of.Default
	}
	return slices.ContainsFunc(p.Engines, func(name string) bool {
		k, _ := kinds.All.Of(name)
		return k != nil && k.Section == of.Section
	})
}

// follow applies the plan to the engines' settings; other settings keep the flags' defaults.
func (f *engineFlags) follow(p plan.Plan) {
	was := f.chosen().Settings
	f.choice = f.chosen().With(engine.Settings{Cache: was.Cache, Mirror: was.Mirror,
		Threads: cmp.Or(p.Threads, was.Threads, f.threads),
		DType:   cmp.Or(p.DType, was.DType, f.dtype), KVDType: p.KVDType, Versions: p.Versions, Slots: p.Slots,
		Storage: p.Storage,
		Keep:    p.Cache == record.CacheOn, Fallback: p.AllowFallback,
		Timeout: time.Duration(p.Timeout), Watchdog: time.Duration(p.Watchdog),
		Container: p.ContainerName,
		Deployment: engine.Deployment{TensorParallel: p.TensorParallel, Quantization: p.Quantization,
			GPUMemory: p.GPUMemory}},
		p.Sections)
	if len(p.Weights) == 1 {
		f.choice.Settings.Weights = p.Weights[0]
	}
	if len(p.Stored) == 1 {
		f.choice.Settings.Stored = p.Stored[0]
	}
}

// complete writes defaults into the plan, so that it repeats the run. An axis has no single value, and is left out.
func (f *engineFlags) complete(p *plan.Plan, m models.Model) {
	p.Isolation = cmp.Or(p.Isolation, plan.OfLaunch)
	packaged := m.Fixed() || m.Format == record.Served // these have their own dtype
	if !packaged && !isAxis(*p, func(x plan.Axes) int { return len(x.DTypes) }) {
		p.DType = f.chosen().Settings.DType
	}
	threads := isAxis(*p, func(x plan.Axes) int { return len(x.ThreadCounts) })
	choice := *f.chosen()
	if threads {
		choice.Settings.Threads = 0
	}
	for _, name := range p.Engines {
		k, _ := kinds.All.Of(name)
		if k == nil {
			continue
		}
		if said := choice.Complete(k, m); said != nil {
			for _, f := range k.Config().Fields() {
				if all := p.Sections[k.Section].Varied(f); all != nil {
					said[f.Key] = p.Sections[k.Section][f.Key]
				}
			}
			p.Say(k.Section, said)
		}
		if k.Uses("threads") && !threads {
			p.Threads = choice.Settings.Threads
		}
		if k.Uses("watchdog") && p.Watchdog == 0 {
			p.Watchdog = plan.Duration(engine.Watchdog)
		}
		if k.Concerned(engine.AxisWeights) && !packaged && !p.Says(engine.AxisWeights) {
			p.Weights = engine.WeightForms[:1]
		}
		said := func(f engine.Field) bool {
			_, ok := p.Sections[k.Section][f.Key]
			return ok && f.Axis == k.VersionList()
		}
		if k.VersionAxis != "" && !p.Says(k.VersionList()) && !slices.ContainsFunc(k.Config().Fields(), said) {
			if err := p.Set(k.VersionList(), k.Version); err != nil {
				panic(err) // it is an axis
			}
		}
	}
}

// each joins what there is to say of kinds.
func each(separator string, of func(*engine.Kind) string) string {
	var out []string
	for _, k := range kinds.All.Sections() {
		if text := of(k); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, separator)
}

// threadsHelp names the engines that have threads.
func threadsHelp() string {
	return "number of threads of " + each(" and ", func(k *engine.Kind) string {
		if k.Uses("threads") {
			return k.Title
		}
		return ""
	})
}

// resolver resolves a plan. With dry, nothing is downloaded, compiled or started.
func (f *runFlags) resolver(p plan.Plan, dry bool, say func(engine, text string), stderr io.Writer) (
	*resolve.Resolver, error) {
	r, err := resolve.New(p, resolve.Means{Dry: dry, Results: f.out, GPU: !browser.Auto.Software(), Warnings: stderr,
		Models: f.finder(func(text string) { say("model", text) }), Engines: f.enginesOf(dry, say), Chat: f.render,
		Complete: func(p *plan.Plan, m models.Model) { f.following(*p).complete(p, m) }})
	if _, placed := errors.AsType[*fault.Error](err); err != nil && !placed {
		err = fault.Wrap(fault.Usage, err, "", "the plan with these flags")
	}
	return r, err
}

// render renders a chat template with the first kind of engine that can.
func (f *runFlags) render(ctx context.Context, p plan.Plan, m models.Model, texts []string) ([]engine.Rendered, error) {
	own := f.following(p)
	for _, k := range kinds.All {
		if e, ok := own.chosen().Engine(k.Name).(engine.Renderer); ok {
			return e.Chat(ctx, m, texts)
		}
	}
	return nil, fault.New(fault.NotSupported, "leave chat out", "chat: no engine renders templates")
}

// following returns the flags with the settings of a setup's plan.
func (f *runFlags) following(p plan.Plan) *runFlags {
	own := *f
	own.engineFlags.follow(p)
	return &own
}

// finder finds models. Some models of the catalogue need features of the WebGPU adapter.
func (f *runFlags) finder(say func(string)) models.Finder {
	return models.Finder{Catalogue: builtInCatalogue, Mirror: f.chosen().Settings.Mirror, Say: say,
		Features: func(ctx context.Context) ([]string, error) {
			for _, k := range kinds.All {
				e, ok := f.chosen().Engine(k.Name).(interface {
					Device(context.Context, func(string)) (record.Device, error)
				})
				if k.Browser && ok {
					device, err := e.Device(ctx, say)
					return browser.Features(device), err
				}
			}
			return nil, nil
		}}
}

// enginesOf makes the engines of setups. A failed download is not repeated.
func (f *runFlags) enginesOf(dry bool, say func(engine, text string)) func(context.Context, plan.Plan) (
	[]resolve.Engine, error) {
	failed := map[string]error{}
	return func(ctx context.Context, p plan.Plan) (out []resolve.Engine, err error) {
		own := f.following(p)
		for _, name := range p.Engines {
			k, _ := kinds.All.Of(name)
			e := resolve.Engine{Engine: own.chosen().Engine(name), Kind: k, Planned: name,
				Say: func(text string) { say(name, text) }}
			if fetcher, ok := e.Engine.(engine.Fetcher); ok && fetcher.Lacks() != "" {
				lacks := fetcher.Lacks()
				if dry {
					e.Fetch = &models.Fetch{What: lacks}
				} else if _, known := failed[lacks]; !known {
					failed[lacks] = fetcher.Fetch(ctx, e.Say)
				}
				e.Err = failed[lacks]
			}
			out = append(out, e)
		}
		return out, context.Cause(ctx)
	}
}
