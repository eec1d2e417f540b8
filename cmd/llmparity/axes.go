package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

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

// scheduleFlags say in which order launches come, how many, and how long they may take.
type scheduleFlags struct {
	untilCI     string
	untilFigure string
	most        int
	order       string
	seed        uint64
	coolDown    time.Duration
	timeout     time.Duration
	cellTimeout time.Duration
	runTimeout  time.Duration
}

func (f *scheduleFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.untilCI, "until-ci",
		"", "repeat until the 95 % interval of a figure reaches no further from its median than so much of it, as in 5%: docs/plans.md")
	flags.StringVar(&f.untilFigure, "until-figure", "", "the figure that --until-ci is of (default: decode_tps)")
	flags.IntVar(&f.most, "max-repetitions",
		0, "with --until-ci the most launches of a cell (default: five times --repetitions)")
	flags.StringVar(&f.order, "order", "", "of launches: "+strings.Join(orders(), ", ")+" (default: "+plan.Interleaved+
		")")
	flags.Uint64Var(&f.seed, "seed", 0, "of a shuffled order, of traffic, and of prompts that are made")
	flags.DurationVar(&f.coolDown, "cool-down", 0, "how long the machine rests before each launch")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long a launch may take (default: the plan's)")
	flags.DurationVar(&f.cellTimeout, "cell-timeout", 0, "how long all launches of a cell together may take")
	flags.DurationVar(&f.runTimeout, "run-timeout", 0,
		"how long the run may take; what is missing then is made by run --resume")
}

func orders() []string { return []string{plan.Interleaved, plan.Shuffled, plan.Grouped} }

// change puts into the plan what flags say.
func (f *scheduleFlags) change(p *plan.Plan, given func(string) bool) error {
	for flag, set := range map[string]func(){
		"order":        func() { p.Order = f.order },
		"seed":         func() { p.Seed = f.seed },
		"cool-down":    func() { p.CoolDown = plan.Duration(f.coolDown) },
		"timeout":      func() { p.Timeout = plan.Duration(f.timeout) },
		"cell-timeout": func() { p.CellTimeout = plan.Duration(f.cellTimeout) },
		"run-timeout":  func() { p.RunTimeout = plan.Duration(f.runTimeout) },
	} {
		if given(flag) {
			set()
		}
	}
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

// trafficFlags say how requests come where a launch measures more than one.
type trafficFlags struct {
	loop       string
	requests   int
	arrivals   string
	rate       float64
	startDelay time.Duration
	ramp       time.Duration
	turns      int
	goal       plan.Goal
}

func (f *trafficFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.loop, "loop", "",
		"how requests come: closed (a client asks again when it was answered), open (at their times, --rate) or batch")
	flags.IntVar(&f.requests, "requests", 0,
		"requests of a launch, of all clients together (default: four of each client)")
	flags.Float64Var(&f.rate, "rate", 0, "requests a second that come whether or not others were answered")
	flags.StringVar(&f.arrivals, "arrivals", "", "of --rate: poisson or constant (default: poisson)")
	flags.DurationVar(&f.startDelay, "start-delay", 0, "from one client's first request to the next one's")
	flags.DurationVar(&f.ramp, "ramp", 0, "in which requests come to their --rate")
	flags.IntVar(&f.turns, "turns", 0, "of a conversation: each prompt begins with all that was said before")
	flags.Float64Var(&f.goal.TTFTms, "goal-ttft",
		0, "ms to the first token that a request must keep to be a good one (goodput)")
	flags.Float64Var(&f.goal.TPOTms, "goal-tpot", 0, "ms a token that a request must keep to be a good one")
	flags.Float64Var(&f.goal.E2Ems, "goal-e2e", 0, "ms in all that a request must keep to be a good one")
}

// change puts into the plan what flags say.
func (f *trafficFlags) change(p *plan.Plan, given func(string) bool) {
	said, goal := plan.Traffic{}, plan.Goal{}
	if p.Traffic != nil {
		said = *p.Traffic
	}
	if said.Goal != nil {
		goal = *said.Goal
	}
	for flag, set := range map[string]func(){
		"loop":        func() { said.Loop = f.loop },
		"requests":    func() { said.Requests = f.requests },
		"rate":        func() { said.Rate = f.rate },
		"arrivals":    func() { said.Arrivals = f.arrivals },
		"start-delay": func() { said.StartDelay = plan.Duration(f.startDelay) },
		"ramp":        func() { said.Ramp = plan.Duration(f.ramp) },
		"turns":       func() { said.Turns = f.turns },
		"goal-ttft":   func() { goal.TTFTms, said.Goal = f.goal.TTFTms, &goal },
		"goal-tpot":   func() { goal.TPOTms, said.Goal = f.goal.TPOTms, &goal },
		"goal-e2e":    func() { goal.E2Ems, said.Goal = f.goal.E2Ems, &goal },
	} {
		if given(flag) {
			set()
			p.Traffic = &said
		}
	}
}
