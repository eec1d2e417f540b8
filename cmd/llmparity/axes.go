package main

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// axisFlags are lists. Every combination of their values is a cell.
type axisFlags []axis

// axis is a flag, and the list of a plan that it sets.
type axis struct {
	*pflag.Flag
	list string
}

func (f *axisFlags) register(flags *pflag.FlagSet) {
	add := func(title, flag, list string) {
		under(flags, title, flag)
		*f = append(*f, axis{flags.Lookup(flag), list})
	}
	texts := func(title, flag, list, help string) {
		flags.StringSlice(flag, nil, help)
		add(title, flag, list)
	}
	numbers := func(title, flag, list, help string) {
		flags.IntSlice(flag, nil, help)
		add(title, flag, list)
	}
	const what, request = "What to run", "Request"
	texts(what, "models", "models", "several models, e.g. tiny,my.gguf")
	texts(what, "dtype", "dtypes", dtypesHelp())
	texts(what, "kv-cache-dtype", "kv_cache_dtypes", kvTypesHelp())
	numbers(what, "thread-counts", "thread_counts", "several numbers of threads, e.g. 1,2")
	texts(what, "start", "starts", "cold: the model file is not in the page cache; warm: it is; or both")
	numbers(request, "input-len", "input_lengths", "prompt lengths in tokens, e.g. 256,512; the prompts are generated")
	numbers(request, "output-len", "output_lengths", "output lengths in tokens, e.g. 64,256")
	numbers(request, "contexts", "contexts", "several context windows, e.g. 1024,4096")
	numbers(request, "concurrency", "concurrency",
		"number of clients, e.g. 1,2,4,8; each sends its next request after an answer")
	numbers(request, "batch-size", "batch_sizes", "number of requests sent at once, e.g. 1,8")
	for _, k := range kinds.All {
		if k.VersionAxis != "" {
			texts(k.Title, axisFlag(k.VersionList()), k.VersionList(), k.VersionHelp)
		}
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
	for _, field := range f.said.Fields() {
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
	flags.StringVar(&f.untilFigure, "until-figure", "", "figure that --until-ci looks at (default "+plan.DefaultUntil+")")
	flags.IntVar(&f.most, "max-repetitions", 0, "with --until-ci: maximum launches of a cell (default 5 times --repetitions)")
	under(flags, "Repetitions", "until-ci until-figure max-repetitions")
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
