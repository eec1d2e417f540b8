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
				addFlag(flags, field)
				under(flags, k.Title, field.Flag)
			}
		}
	}
}

// Which settings commands want: those that run models all of them, doctor where programs are, convert how packages are
// made.
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
	for _, k := range kinds.All.Sections() {
		config := f.chosen().Config(k)
		if err := engine.CheckFlags(config, given); err != nil {
			return err
		}
		for _, field := range config.Fields() {
			if axis := axisFlag(field.Axis); axis != "" && given(axis) && given(field.Flag) {
				return fault.New(fault.Usage, "use one of them", "--%s and --%s set the same thing", axis, field.Flag)
			}
		}
	}
	if given("threads") && f.threads < 1 {
		return fault.New(fault.Usage, "", "--threads %d: must be at least 1", f.threads)
	}
	return nil
}

// files refuses missing or wrong files that flags name. Files that a plan names are checked when it runs.
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

// change applies the flags to the plan.
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

// follow applies the plan to the engines' settings; other settings keep the flags' defaults.
func (f *engineFlags) follow(p plan.Plan) {
	was := f.chosen().Settings
	f.choice = f.chosen().With(engine.Settings{Cache: was.Cache, Threads: cmp.Or(p.Threads, was.Threads, f.threads),
		DType: cmp.Or(p.DType, was.DType, f.dtype), KVDType: p.KVDType, Versions: p.Versions, Slots: p.Slots,
		Keep: p.Cache == record.CacheOn, Timeout: time.Duration(p.Timeout), Watchdog: time.Duration(p.Watchdog)},
		p.Sections)
}

// complete writes the engines' defaults into the plan. An axis has no single value, and is left out.
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

// says reports whether a section sets the version.
func says(k *engine.Kind, said engine.Section) bool {
	return slices.ContainsFunc(k.Config().Fields(), func(f engine.Field) bool {
		_, ok := said[f.Key]
		return ok && f.Axis == k.VersionList()
	})
}

// each collects a text of every kind, unless it is empty.
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
	return "number of threads of " + strings.Join(each(func(k *engine.Kind) string {
		if k.Heeds("threads") {
			return k.Title
		}
		return ""
	}), " and ")
}

// dtypesHelp says what --dtype means to each engine.
func dtypesHelp() string {
	return "f32, f16 (needs shader-f16), or both; the dtype of " + strings.Join(each(func(k *engine.Kind) string {
		if k.DTypeOf == "" {
			return ""
		}
		return k.Title + "'s " + k.DTypeOf
	}), ", and of ")
}

// kvTypesHelp lists the KV cache dtypes of engines.
func kvTypesHelp() string {
	return "KV cache dtypes; " + strings.Join(each(func(k *engine.Kind) string {
		if k.KVTypes == nil || len(k.KVTypes("")) < 2 {
			return ""
		}
		return k.Title + ": " + strings.Join(k.KVTypes(""), ", ")
	}), "; ")
}
