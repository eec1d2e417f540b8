package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/kinds"
	"llmparity/internal/plan"
	"llmparity/internal/record"
)

// axisFlags are lists. Every combination of their values is a cell.
type axisFlags struct {
	models, dtypes, kvTypes, starts   []string
	inputs, outputs, batches, clients []int
	contexts, threadCounts            []int
	versions                          map[string]*[]string // by axis
}

func (f *axisFlags) register(flags *pflag.FlagSet) {
	ints := func(to *[]int, name, help string) { flags.IntSliceVar(to, name, nil, help) }
	texts := func(to *[]string, name, help string) { flags.StringSliceVar(to, name, nil, help) }
	texts(&f.models, "models", "several models, e.g. tiny,my.gguf")
	texts(&f.dtypes, "dtype", dtypesHelp())
	texts(&f.kvTypes, "kv-cache-dtype", kvTypesHelp())
	ints(&f.threadCounts, "thread-counts", "several numbers of threads, e.g. 1,2")
	texts(&f.starts, "start", "cold: the model file is not in the page cache; warm: it is; or both")
	under(flags, "What to run", "models dtype kv-cache-dtype thread-counts start")
	ints(&f.inputs, "input-len", "prompt lengths in tokens, e.g. 256,512; the prompts are generated")
	ints(&f.outputs, "output-len", "output lengths in tokens, e.g. 64,256")
	ints(&f.contexts, "contexts", "several context windows, e.g. 1024,4096")
	ints(&f.clients, "concurrency", "number of clients, e.g. 1,2,4,8; each sends its next request after an answer")
	ints(&f.batches, "batch-size", "number of requests sent at once, e.g. 1,8")
	under(flags, "Request", "input-len output-len contexts concurrency batch-size")
	f.versions = map[string]*[]string{}
	for _, k := range kinds.All {
		if k.VersionAxis != "" {
			f.versions[k.VersionList()] = new([]string)
			texts(f.versions[k.VersionList()], axisFlag(k.VersionList()), k.VersionHelp)
			under(flags, k.Title, axisFlag(k.VersionList()))
		}
	}
}

// change applies the flags to the plan.
func (f *axisFlags) change(p *plan.Plan, given func(string) bool) error {
	type axis struct {
		flag, name string
		texts      []string
		numbers    []int
	}
	all := []axis{
		{"models", "models", f.models, nil}, {"input-len", "input_lengths", nil, f.inputs},
		{"output-len", "output_lengths", nil, f.outputs},
		{"batch-size", "batch_sizes", nil, f.batches}, {"concurrency", "concurrency", nil, f.clients},
		{"contexts", "contexts", nil, f.contexts},
		{"thread-counts", "thread_counts", nil, f.threadCounts}, {"dtype", "dtypes", f.dtypes, nil},
		{"kv-cache-dtype", "kv_cache_dtypes", f.kvTypes, nil},
		{"start", "starts", f.starts, nil},
	}
	for list, values := range f.versions {
		all = append(all, axis{axisFlag(list), list, *values, nil})
	}
	for _, axis := range all {
		if !given(axis.flag) {
			continue
		}
		values := slices.Clone(axis.texts)
		for _, n := range axis.numbers {
			values = append(values, strconv.Itoa(n))
		}
		if len(values) == 0 {
			return fault.New(fault.Usage, "list one or more, separated by commas", "--%s has no value", axis.flag)
		}
		if err := p.Set(axis.name, values...); err != nil {
			return fault.Wrap(fault.Usage, err, "", "--%s", axis.flag)
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
		switch to := field.To.(type) {
		case *string:
			flags.StringVar(to, field.Flag, *to, field.Help)
		case *int:
			flags.IntVar(to, field.Flag, *to, field.Help)
		case *uint64:
			flags.Uint64Var(to, field.Flag, *to, field.Help)
		case *float64:
			flags.Float64Var(to, field.Flag, *to, field.Help)
		case *plan.Duration:
			flags.DurationVar((*time.Duration)(to), field.Flag, time.Duration(*to), field.Help)
		}
		under(flags, title, field.Flag)
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
	return f.until(p, given)
}

// until applies --until-ci and the flags that belong to it.
func (f *scheduleFlags) until(p *plan.Plan, given func(string) bool) error {
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
	for flag, set := range map[string]func(){
		"until-figure":    func() { until.Figure = f.untilFigure },
		"max-repetitions": func() { until.Most = f.most },
	} {
		if !given(flag) {
			continue
		}
		if until.Width == 0 {
			return fault.New(fault.Usage, "add it, e.g. --until-ci 5%", "--%s requires --until-ci", flag)
		}
		set()
	}
	if until.Width > 0 {
		p.UntilCI = &until
	}
	return nil
}
