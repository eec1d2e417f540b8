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
)

// axisFlags are lists: every combination of their values is a setup or a cell.
type axisFlags struct {
	models, dtypes, kvTypes, starts   []string
	inputs, outputs, batches, clients []int
	contexts, threadCounts            []int
	versions                          map[string]*[]string // by axis
}

func (f *axisFlags) register(flags *pflag.FlagSet) {
	ints := func(to *[]int, name, help string) { flags.IntSliceVar(to, name, nil, help) }
	texts := func(to *[]string, name, help string) { flags.StringSliceVar(to, name, nil, help) }
	texts(&f.models, "models", "several models, each as --model has it; lists are separated by commas or spaces")
	ints(&f.inputs, "input-len", "tokens of prompts, by the model's own count, as in 256,512; the prompts are made")
	ints(&f.outputs, "output-len", "tokens to generate, as in 64,256")
	ints(&f.batches, "batch-size", "requests that are sent in the same moment, as in 1,8")
	ints(&f.clients, "concurrency", "clients, each of which asks again when it was answered, as in 1,2,4,8")
	ints(&f.contexts, "contexts", "context windows in tokens, as in 1024,4096")
	ints(&f.threadCounts, "thread-counts", threadsHelp()+", as in 1,2")
	texts(&f.dtypes, "dtype", dtypesHelp())
	texts(&f.kvTypes, "kv-cache-dtype", kvTypesHelp())
	texts(&f.starts, "start", "cold (the model's file is not in the page cache) or warm (it is), or both, as cells of their own")
	f.versions = map[string]*[]string{}
	for _, k := range kinds.All {
		if k.VersionAxis != "" {
			f.versions[k.VersionList()] = new([]string)
			texts(f.versions[k.VersionList()], axisFlag(k.VersionList()), k.VersionHelp)
		}
	}
}

// change puts into the plan what flags say.
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
			return fault.New(fault.Usage, "give one or more, with commas between them", "--%s has no value", axis.flag)
		}
		if err := p.Set(axis.name, values...); err != nil {
			return fault.Wrap(fault.Usage, err, "", "--%s", axis.flag)
		}
	}
	return nil
}

// scheduleFlags say what a plan says in one value, and until when cells are repeated.
type scheduleFlags struct {
	said        plan.Plan
	untilCI     string
	untilFigure string
	most        int
}

func (f *scheduleFlags) register(flags *pflag.FlagSet) {
	f.said = plan.Plan{Isolation: plan.OfLaunch, Watchdog: plan.Duration(engine.Watchdog),
		Traffic: &plan.Traffic{Goal: &plan.Goal{}}}
	for _, field := range f.said.Fields() {
		if field.Flag == "" {
			continue
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
	}
	flags.StringVar(&f.untilCI, "until-ci",
		"", "repeat until the 95 % interval of a figure reaches no further from its median than so much of it, as in 5%: docs/howto/write-a-plan.md")
	flags.StringVar(&f.untilFigure, "until-figure", "", "the figure that --until-ci is of (default: decode_tps)")
	flags.IntVar(&f.most, "max-repetitions",
		0, "with --until-ci the most launches of a cell (default: five times --repetitions)")
}

// change puts into the plan what flags say.
func (f *scheduleFlags) change(p *plan.Plan, given func(string) bool) error {
	p.Take(&f.said, given)
	return f.until(p, given)
}

// until is what repetitions end by.
func (f *scheduleFlags) until(p *plan.Plan, given func(string) bool) error {
	until := plan.UntilCI{}
	if p.UntilCI != nil {
		until = *p.UntilCI
	}
	if given("until-ci") {
		width, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(f.untilCI, "%")), 64)
		if err != nil || !(width > 0 && width < 100) {
			return fault.New(fault.Usage, "write percent, as in 5%", "--until-ci %q", f.untilCI)
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
			return fault.New(fault.Usage, "add --until-ci 5%", "--%s says how --until-ci repeats", flag)
		}
		set()
	}
	if until.Width > 0 {
		p.UntilCI = &until
	}
	return nil
}
