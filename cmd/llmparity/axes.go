package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"llmparity/assets/plans"
	"llmparity/cmd/llmparity/help"
	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/plan/devices"
	"llmparity/internal/bench/resolve"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// axisFlags are the fields of a plan whose lists have flags. Every combination of their values is a cell.
type axisFlags []axisFlag

type axisFlag struct {
	*pflag.Flag
	list string
}

func (f *axisFlags) register(flags *pflag.FlagSet) {
	for _, field := range plan.Fields(kinds.All) {
		switch {
		case field.Flag == "":
			continue
		case field.Text():
			flags.StringSlice(field.Flag, nil, field.Help)
		default:
			flags.IntSlice(field.Flag, nil, field.Help)
		}
		help.Under(flags, field.Heading, field.Flag)
		*f = append(*f, axisFlag{flags.Lookup(field.Flag), field.List})
	}
}

// change applies the flags to the plan.
func (f axisFlags) change(p *plan.Plan, given func(string) bool) error {
	for _, axis := range f {
		if !given(axis.Name) {
			continue
		}
		values := axis.Value.(pflag.SliceValue).GetSlice()
		if len(values) == 0 {
			return fault.New(fault.Usage, "list one or more, separated by commas", "--%s has no value", axis.Name)
		}
		if err := p.Set(axis.list, values...); err != nil {
			return fault.Wrap(fault.Usage, err, "", "--%s", axis.Name)
		}
	}
	return nil
}

// scheduleFlags are the plan's fields that have one value, and --until-ci.
type scheduleFlags struct {
	said        plan.Plan
	untilCI     string
	untilFigure string
	most        int
}

func (f *scheduleFlags) register(flags *pflag.FlagSet) {
	f.said = plan.Plan{Isolation: plan.OfLaunch, Watchdog: plan.Duration(engine.Watchdog),
		Traffic: &plan.Traffic{Goal: &record.Goal{}}}
	for _, field := range f.said.Singles() {
		if field.Flag == "" {
			continue
		}
		title := "Repetitions"
		if strings.HasPrefix(field.Key, "traffic.") {
			title = "Load"
		}
		addFlag(flags, title, field.Flag, field.To, field.Help)
	}
	flags.StringVar(&f.untilCI, "until-ci", "",
		"repeat until the 95% confidence interval is within this share of the median, e.g. 5%")
	flags.StringVar(&f.untilFigure, "until-figure", "", "figure whose interval --until-ci checks (default "+plan.DefaultUntil+")")
	flags.IntVar(&f.most, "max-repetitions", 0, "with --until-ci: maximum launches of a cell (default 5 times --repetitions)")
	help.Under(flags, "Repetitions", "until-ci until-figure max-repetitions")
	help.Under(flags, "What to run", "container")
}

// change applies the flags to the plan.
func (f *scheduleFlags) change(p *plan.Plan, given func(string) bool) error {
	p.Take(&f.said, given)
	until := plan.UntilCI{}
	if p.UntilCI != nil {
		until = *p.UntilCI
	}
	if given("until-ci") {
		width, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(f.untilCI, "%")), 64)
		if err != nil || !(width > 0 && width < 100) {
			return fault.New(fault.Usage, "use a percentage below 100%, e.g. 5%", "--until-ci %q is invalid", f.untilCI)
		}
		until.Width = plan.Percent(width)
	}
	for _, flag := range []string{"until-figure", "max-repetitions"} {
		if given(flag) && until.Width == 0 {
			return fault.New(fault.Usage, "add it, e.g. --until-ci 5%", "--%s requires --until-ci", flag)
		}
	}
	if until.Width == 0 {
		return nil
	}
	if given("until-figure") {
		until.Figure = f.untilFigure
	}
	if given("max-repetitions") {
		until.Most = f.most
	}
	p.UntilCI = &until
	return nil
}

// presetFlags choose a built-in plan and its sizes.
type presetFlags struct {
	preset      string
	prompt, gen []int // tokens
	lengths     []int
	short, long int
	left        string // a note about engines of the preset that are not here
}

// presetSizes are the size flags of a preset.
func presetSizes(name string) []string {
	switch name {
	case "seqlen":
		return []string{"seqlens", "gen-toks"}
	case "mixed":
		return []string{"short", "long", "gen-toks"}
	}
	return []string{"prompt-toks", "gen-toks"}
}

func (f *presetFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.preset, "preset", "",
		"built-in plan instead of PLAN: "+strings.Join(plans.Names(), ", ")+" (see llmparity help presets)")
	help.Under(flags, "What to run", "preset")
	flags.IntSliceVar(&f.prompt, "prompt-toks", nil, "prompt lengths in tokens")
	flags.IntSliceVar(&f.gen, "gen-toks", nil, "output lengths in tokens")
	flags.IntSliceVar(&f.lengths, "seqlens", nil, "preset seqlen: prompt lengths in tokens, e.g. 64,128,256")
	flags.IntVar(&f.short, "short", 0, "preset mixed: length of short prompts in tokens")
	flags.IntVar(&f.long, "long", 0, "preset mixed: length of long prompts in tokens")
	help.Under(flags, "Sizes of presets", "prompt-toks gen-toks seqlens short long")
}

// builtIn is the preset's plan, or the default one.
func (f *presetFlags) builtIn() (plan.Plan, error) {
	if f.preset == "" {
		return plan.Parse(plans.Default, "default plan", kinds.All...)
	}
	text, err := plans.Preset(f.preset)
	if err != nil {
		return plan.Plan{}, err
	}
	return plan.Parse(text, "preset "+f.preset, kinds.All...)
}

// check refuses an unknown preset, and size flags that it does not have.
func (f *presetFlags) check(given func(string) bool, args []string) error {
	if given("preset") && len(args) > 0 {
		return fault.New(fault.Usage, "use one of them", "--preset %s and the plan %s", f.preset, args[0])
	}
	if given("preset") && !slices.Contains(plans.Names(), f.preset) {
		return fault.New(fault.Usage, help.DidYouMean(f.preset, plans.Names()), "unknown preset %q", f.preset)
	}
	takes := presetSizes(f.preset)
	for _, size := range []struct {
		flag   string
		values []int
	}{{"prompt-toks", f.prompt}, {"gen-toks", f.gen}, {"seqlens", f.lengths}, {"short", []int{f.short}},
		{"long", []int{f.long}}} {
		switch {
		case !given(size.flag):
		case f.preset == "":
			of := slices.DeleteFunc(plans.Names(),
				func(name string) bool { return !slices.Contains(presetSizes(name), size.flag) })
			return fault.New(fault.Usage, "add one, or use --input-len and --output-len",
				"--%s requires a preset: %s", size.flag, strings.Join(of, ", "))
		case !slices.Contains(takes, size.flag):
			return fault.New(fault.Usage, "it has --"+strings.Join(takes, ", --"), "preset %s has no --%s", f.preset,
				size.flag)
		case len(size.values) == 0 || slices.Min(size.values) < 1:
			return fault.New(fault.Usage, "", "--%s: must be at least 1", size.flag)
		}
	}
	return nil
}

// change applies the size flags to the preset.
func (f *presetFlags) change(p *plan.Plan) {
	if f.preset == "" {
		return
	}
	p.Engines = kinds.All.In(f.preset)
	if in := slices.Concat(f.prompt, f.lengths); len(in) > 0 {
		p.InputLengths = in
	}
	if len(f.gen) > 0 {
		p.OutputLengths = f.gen
	}
	longest := 0
	if p.Traffic != nil {
		for i := range p.Traffic.Mix {
			k := &p.Traffic.Mix[i]
			k.InputTokens = cmp.Or(map[string]int{"short": f.short, "long": f.long}[k.Name], k.InputTokens)
			if k.Name == "short" {
				p.InputLengths = []int{k.InputTokens} // also measured alone
			}
			longest = max(longest, k.InputTokens)
		}
	}
	for _, n := range p.InputLengths {
		longest = max(longest, n)
	}
	if need := longest + slices.Max(p.OutputLengths); need > resolve.MaxUnasked {
		p.Context = need
	}
}

// everyEngine are the presets that run each engine that is here.
var everyEngine = []string{"engines", "matrix"}

// onlyHere leaves engines whose program is not found out of a preset of every engine, with a note. If none is found, or
// the user names engines, they stay, and the run reports what is missing.
func (f *runFlags) onlyHere(p *plan.Plan, given func(string) bool) {
	if !slices.Contains(everyEngine, f.preset) || given("engines") || given("engine") {
		return
	}
	absent := slices.DeleteFunc(slices.Clone(p.Engines), f.isHere)
	here := slices.DeleteFunc(slices.Clone(p.Engines), func(name string) bool { return slices.Contains(absent, name) })
	if len(here) > 0 && len(absent) > 0 {
		p.Engines = here
		f.left = fmt.Sprintf("not installed, skipped: %s; \"llmparity doctor\" says how to install them",
			strings.Join(absent, ", "))
	}
}

// onDevices lets the preset matrix run engines on each of their devices. An engine whose flags choose one runs on that,
// and one without a dtype of its own runs once.
func (f *runFlags) onDevices(p *plan.Plan, given func(string) bool) {
	if f.preset != "matrix" {
		return
	}
	for _, name := range enginesIn(*p) {
		k, _ := kinds.All.Of(name)
		if k != nil && k.DTypeOf == "" && len(p.DTypes) > 1 {
			p.Exclude = append(p.Exclude, plan.Entry{"engine": {name}, "dtype": p.DTypes[1:]})
		}
		if k == nil || k.Devices == nil {
			continue
		}
		all := k.Devices(f.chosen().Config(k))
		if len(all) > 0 && !slices.ContainsFunc(k.Config().Fields(), func(field engine.Field) bool {
			_, chooses := all[0][field.Key]
			return chooses && given(field.Flag)
		}) {
			devices.Vary(p, k, all)
		}
	}
}

// isHere reports whether the program of an engine is found.
func (f *engineFlags) isHere(name string) bool {
	k, _ := kinds.All.Of(name)
	if k == nil || k.Program == nil {
		return true
	}
	_, err := k.Program(f.chosen().Config(k), f.chosen().Settings)
	return err == nil
}
