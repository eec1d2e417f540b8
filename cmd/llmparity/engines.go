package main

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"llmparity/internal/cache"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// engineFlags is what a user may say of engines, whichever command starts them.
type engineFlags struct {
	threads int
	dtype   string         // where a plan has none
	choice  *engine.Choice // as flags have it, and then as a plan has it
}

// chosen are the engines, by default until something else is said.
func (f *engineFlags) chosen() *engine.Choice {
	if f.choice == nil {
		f.choice = engine.NewChoice(kinds.All)
		f.choice.Settings.Cache = cache.Dir(os.Getenv)
	}
	return f.choice
}

// register makes flags of the settings that engines have. Those that only a run or the making of a package heeds are
// left out unless they are wanted.
func (f *engineFlags) register(flags *pflag.FlagSet, wanted func(engine.Field) bool) {
	f.dtype = "f32"
	for _, k := range kinds.All.Sections() {
		for _, field := range f.chosen().Config(k).Fields() {
			if field.Flag != "" && wanted(field) {
				addFlag(flags, field)
			}
		}
	}
}

// What commands want of engines' flags: those that run models all, others what says which engine there is.
func ofRuns(engine.Field) bool       { return true }
func ofParts(f engine.Field) bool    { return !f.Run }
func ofPackages(f engine.Field) bool { return f.Make }

func addFlag(flags *pflag.FlagSet, f engine.Field) {
	switch to := f.To.(type) {
	case *string:
		flags.StringVar(to, f.Flag, *to, f.Help)
	case *int:
		flags.IntVar(to, f.Flag, *to, f.Help)
	case *bool:
		flags.BoolVar(to, f.Flag, *to, f.Help)
	case *[]string:
		flags.StringArrayVar(to, f.Flag, *to, f.Help)
	}
}

// isPlace tells whether a flag says where a part of an engine is found, and nothing of what is measured.
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

// valid refuses what makes no sense, whichever engines there are.
func (f *engineFlags) valid(given func(string) bool) error {
	for _, k := range kinds.All.Sections() {
		config := f.chosen().Config(k)
		if err := engine.CheckFlags(config, given); err != nil {
			return err
		}
		for _, field := range config.Fields() {
			if axis := axisFlag(field.Axis); axis != "" && given(axis) && given(field.Flag) {
				return fault.New(fault.Usage, "choose one", "--%s and --%s say the same thing", axis, field.Flag)
			}
		}
	}
	if given("threads") && f.threads < 1 {
		return fault.New(fault.Usage, "", "--threads %d: at least 1 is needed", f.threads)
	}
	return nil
}

// files refuses what flags name and is not what it should be; what a plan names is judged where the plan runs.
func (f *engineFlags) files() error {
	for _, k := range kinds.All.Sections() {
		if c, ok := f.chosen().Config(k).(interface{ CheckFiles() error }); ok {
			if err := c.CheckFiles(); err != nil {
				return err
			}
		}
	}
	return nil
}

// axisFlag is the flag of an axis of plans.
func axisFlag(list string) string { return strings.TrimSuffix(strings.ReplaceAll(list, "_", "-"), "s") }

// change puts into the plan what flags say.
func (f *engineFlags) change(p *plan.Plan, given func(string) bool) {
	for _, k := range kinds.All.Sections() {
		config := f.chosen().Config(k)
		if said := engine.Given(config, p.Sections[k.Section], given); said != nil {
			p.Say(k.Section, said)
		}
		for _, field := range config.Fields() {
			if field.Axis == k.VersionList() && given(field.Flag) {
				p.Unversion(k.VersionAxis)
			}
		}
	}
}

// follow takes from the plan what it says; where it says nothing the flags' own defaults stay.
func (f *engineFlags) follow(p plan.Plan) {
	was := f.chosen().Settings
	f.choice = f.chosen().With(engine.Settings{Cache: was.Cache, Threads: cmp.Or(p.Threads, was.Threads, f.threads),
		DType: cmp.Or(p.DType, was.DType, f.dtype), KVDType: p.KVDType, Versions: p.Versions, Slots: p.Slots,
		Keep: p.Cache == record.CacheOn, Timeout: time.Duration(p.Timeout), Watchdog: time.Duration(p.Watchdog)},
		p.Sections)
}

// complete writes into the plan what was chosen of engines by default. What is an axis has no one value.
func (f *engineFlags) complete(p *plan.Plan, m engine.Model) {
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
			p.Say(k.Section, said)
		}
		if k.Heeds("threads") && !threads {
			p.Threads = choice.Settings.Threads
		}
		if k.Heeds("watchdog") && p.Watchdog == 0 {
			p.Watchdog = plan.Duration(engine.Watchdog)
		}
		if k.VersionAxis != "" && !p.Says(k.VersionList()) && !says(k, p.Sections[k.Section]) {
			if err := p.Set(k.VersionList(), k.Version); err != nil {
				panic(err) // it is an axis
			}
		}
	}
}

// says tells whether a section says which version runs.
func says(k *engine.Kind, said engine.Section) bool {
	return slices.ContainsFunc(k.Config().Fields(), func(f engine.Field) bool {
		_, ok := said[f.Key]
		return ok && f.Axis == k.VersionList()
	})
}

// each gives what is said of the kinds, where something is.
func each(of func(*engine.Kind) string) []string {
	var out []string
	for _, k := range kinds.All.Sections() {
		if text := of(k); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// threadsHelp names the engines that have threads.
func threadsHelp() string {
	return "threads of " + strings.Join(each(func(k *engine.Kind) string {
		if k.Heeds("threads") {
			return k.Title
		}
		return ""
	}), " and ")
}

// dtypesHelp says what of engines has a plan's dtype.
func dtypesHelp() string {
	return strings.Join(each(func(k *engine.Kind) string {
		if k.DTypeOf == "" {
			return ""
		}
		return k.Title + "'s " + k.DTypeOf
	}), ", and ") + ": f32, f16 (the adapter must have shader-f16), or both"
}

// kvTypesHelp says which dtypes engines' KV caches can have.
func kvTypesHelp() string {
	return "numbers of the KV cache: of " + strings.Join(each(func(k *engine.Kind) string {
		if k.KVTypes == nil || len(k.KVTypes("")) < 2 {
			return ""
		}
		return k.Title + " " + strings.Join(k.KVTypes(""), ", ")
	}), "; of ")
}
