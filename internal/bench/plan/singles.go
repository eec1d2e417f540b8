package plan

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"llmparity/internal/record"
)

// Single describes a field of a plan that has one value. Flags, validation and the schema are derived from it. What
// cells can differ in is a Field.
type Single struct {
	Key        string // with the key of its group
	To         any    // *string, *int, *uint64, *float64, *Duration
	Flag, Help string // of run; empty: it has none
	OneOf      []string
	Least      int
	Most       int    // 0: no maximum
	None       bool   // 0 means none
	Such       string // an example of a duration, or the unit of a number
}

// Singles are the fields of a plan that have one value, and those of its traffic if it has any.
func (p *Plan) Singles() []Single {
	out := []Single{
		{Key: "repetitions", To: &p.Repetitions, Least: 1, Most: mostRepetitions,
			Flag: "repetitions", Help: "measured launches of each cell"},
		{Key: "warmup.launches", To: &p.Warmup.Launches},
		{Key: "warmup.tokens", To: &p.Warmup.Tokens, Least: 1},
		{Key: "timeout", To: &p.Timeout, Such: "3m", Flag: "timeout",
			Help: "time limit of a launch (default: timeout in the plan, or 3m)"},
		{Key: "cell_timeout", To: &p.CellTimeout, None: true, Such: "30m", Flag: "cell-timeout",
			Help: "time limit of all launches of a cell"},
		{Key: "run_timeout", To: &p.RunTimeout, None: true, Such: "8h", Flag: "run-timeout",
			Help: "time limit of the run; --resume continues an interrupted run"},
		{Key: "cool_down", To: &p.CoolDown, None: true, Such: "10s", Flag: "cool-down",
			Help: "pause before each launch"},
		{Key: "watchdog", To: &p.Watchdog, None: true, Such: "1m", Flag: "watchdog",
			Help: "how long a page, or an engine program of your own, may report nothing before the launch fails"},
		{Key: "threads", To: &p.Threads, Least: 1, None: true},
		{Key: "isolation", To: &p.Isolation, OneOf: []string{OfLaunch, Reused, Shared}, Flag: "isolation",
			Help: "what repetitions share. launch: nothing, each has a new process; reused: one process per cell; shared: one process for all cells of an engine with the same start settings"},
		{Key: "cache", To: &p.Cache, OneOf: []string{record.CacheOff, record.CacheOn}},
		{Key: "order", To: &p.Order, OneOf: []string{Interleaved, Shuffled, Grouped}, Flag: "order",
			Help: "order of launches: interleaved, shuffled or grouped (default interleaved)"},
		{Key: "seed", To: &p.Seed, Flag: "seed", Help: "random seed of the shuffled order, traffic and generated prompts"},
		{Key: "order_seed", To: &p.OrderSeed},
		{Key: "dtype", To: &p.DType, OneOf: DTypes},
		{Key: "kv_cache_dtype", To: &p.KVDType, OneOf: KVDTypes},
		{Key: "container_name", To: &p.ContainerName, Flag: "container",
			Help: "running container of Docker or Podman, by `NAME`, in which native engines are started (docs/howto/profile-a-container.md)"},
		{Key: "start", To: &p.Start, OneOf: Starts},
		{Key: "storage", To: &p.Storage, OneOf: Storages},
		{Key: "text_of", To: &p.TextOf, Flag: "text-of",
			Help: "engine whose output is the reference text (default: the first native engine that reports token ids)"},
		{Key: "quality", To: &p.Quality, Flag: "quality",
			Help: "after the run, measure the perplexity of a text `FILE`, of the text builtin, or of its first 16 windows (quick), in engines that can score"},
		{Key: "quality_of", To: &p.QualityOf, Flag: "quality-of",
			Help: "the one engine that scores the text of --quality (default: each that can score)"},
	}
	if p.Traffic != nil {
		out = append(out, p.Traffic.singles()...)
	}
	return out
}

// singles are those of traffic, and of its goal if it has one.
func (t *Traffic) singles() []Single {
	out := []Single{
		{Key: "traffic.loop", To: &t.Loop, Flag: "loop",
			OneOf: []string{record.ClosedLoop, record.OpenLoop, record.Batch},
			Help:  "kind of load. closed: a client sends its next request after an answer; open: requests arrive at --rate; batch: all requests are sent at once"},
		{Key: "traffic.requests", To: &t.Requests, None: true, Least: 1, Most: mostRequests, Flag: "requests",
			Help: "requests per launch, of all clients together (default: 4 per client)"},
		{Key: "traffic.rate", To: &t.Rate, Flag: "rate", Help: "requests per second of an open loop"},
		{Key: "traffic.arrivals", To: &t.Arrivals, OneOf: []string{record.Constant, record.Poisson}, Flag: "arrivals",
			Help: "arrivals of an open loop: poisson or constant (default poisson)"},
		{Key: "traffic.concurrency", To: &t.Concurrency, None: true, Least: 1, Most: mostClients},
		{Key: "traffic.start_delay", To: &t.StartDelay, None: true, Flag: "start-delay",
			Help: "delay between the first request of one client and that of the next client"},
		{Key: "traffic.ramp", To: &t.Ramp, None: true, Flag: "ramp", Help: "time in which an open loop reaches --rate"},
		{Key: "traffic.turns", To: &t.Turns, None: true, Least: 1, Most: 1000, Flag: "turns",
			Help: "turns of a conversation; each prompt contains the turns before it"},
	}
	if g := t.Goal; g != nil {
		const ms = "a number of milliseconds"
		out = append(out, Single{Key: "traffic.goal.ttft_ms", To: &g.TTFTms, Such: ms, Flag: "goal-ttft",
			Help: "goodput: maximum time to first token in ms"},
			Single{Key: "traffic.goal.tpot_ms", To: &g.TPOTms, Such: ms, Flag: "goal-tpot",
				Help: "goodput: maximum time per output token in ms"},
			Single{Key: "traffic.goal.e2e_ms", To: &g.E2Ems, Such: ms, Flag: "goal-e2e",
				Help: "goodput: maximum time of the whole request in ms"})
	}
	return out
}

// Take copies the fields of another plan whose flags were given.
func (p *Plan) Take(said *Plan, given func(flag string) bool) {
	for _, f := range said.Singles() {
		if f.Flag == "" || !given(f.Flag) {
			continue
		}
		if strings.HasPrefix(f.Key, "traffic.") { // copies of the plan share it
			p.Traffic = copied(p.Traffic)
		}
		if strings.HasPrefix(f.Key, "traffic.goal.") {
			p.Traffic.Goal = copied(p.Traffic.Goal)
		}
		own := p.Singles()
		i := slices.IndexFunc(own, func(o Single) bool { return o.Key == f.Key })
		reflect.ValueOf(own[i].To).Elem().Set(reflect.ValueOf(f.To).Elem())
	}
}

// copied returns a copy, or a zero value for nil.
func copied[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return new(*p)
}

// check refuses values that the field cannot have.
func (f Single) check() error {
	switch to := f.To.(type) {
	case *string:
		if f.OneOf != nil && *to != "" && !slices.Contains(f.OneOf, *to) {
			return fmt.Errorf("%s: %w", f.Key, unknown(*to, f.OneOf))
		}
	case *int:
		switch n := *to; {
		case n == 0 && f.None, n >= f.Least && (n <= f.Most || f.Most == 0):
		case f.None && f.Most > 0:
			return fmt.Errorf("%s: %d is out of range; use %d to %d", f.Key, n, f.Least, f.Most)
		case n < f.Least:
			return fmt.Errorf("%s: %d is too small; use at least %d", f.Key, n, f.Least)
		default:
			return fmt.Errorf("%s: %d is too large; use at most %d", f.Key, n, f.Most)
		}
	case *Duration:
		switch {
		case *to > 0, *to == 0 && f.None:
		case f.Such == "":
			return fmt.Errorf("%s: %s is negative", f.Key, time.Duration(*to))
		case f.None:
			return fmt.Errorf("%s: must be a duration such as %s, or 0 for none", f.Key, f.Such)
		default:
			return fmt.Errorf("%s: must be a duration such as %s", f.Key, f.Such)
		}
	case *float64:
		if f.Such != "" && *to < 0 {
			return fmt.Errorf("%s: %g is negative; use %s", f.Key, *to, f.Such)
		}
	}
	return nil
}

// Maxima, against typing errors.
const (
	mostTokens      = 10_000_000
	mostRequests    = 1_000_000
	mostRepetitions = 100_000
)

// nameForm is the form of a plan's name, which becomes the name of a folder.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Validate returns an error that begins with the field that is wrong. Only Expand knows whether there are cells, and
// whether the entries of include and exclude choose any.
func (p Plan) Validate() error {
	checks := []func() error{p.validateScalars, p.validateModels, func() error { return p.Traffic.validate(p) },
		p.validatePrompts, p.validateSchedule, p.validateAxes, p.validateSections,
		p.validateLoad, p.Gate.Validate, p.validateOf}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p Plan) validateScalars() error {
	switch {
	case p.Name == "":
		return errors.New("name: missing; it becomes the name of the run's folder")
	case !nameForm.MatchString(p.Name):
		return fmt.Errorf("name: %q is invalid; use up to 100 letters, digits, dots, dashes and underscores", p.Name)
	}
	for _, f := range Fields(p.kinds) {
		if v, ok := f.single(&p); ok && f.check != nil {
			if err := f.check(v); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	}
	for _, f := range p.Singles() {
		if err := f.check(); err != nil {
			return err
		}
	}
	switch {
	case p.CellTimeout > 0 && p.CellTimeout < p.Timeout:
		return fmt.Errorf("cell_timeout: %s is less than the timeout of one launch, %s", time.Duration(p.CellTimeout),
			time.Duration(p.Timeout))
	case p.Watchdog != 0 && time.Duration(p.Watchdog) < time.Second:
		return fmt.Errorf("watchdog: %s is too short; use at least 1s", time.Duration(p.Watchdog))
	}
	return nil
}

func (p Plan) validateModels() error {
	switch {
	case len(p.Models) > 0 && p.Model != "":
		return errors.New("models: cannot be combined with model; remove one")
	case len(p.Models) == 0 && p.Model == "":
		return errors.New("model: missing; use tiny if you have no file")
	}
	seen := map[string]bool{}
	for _, g := range p.scopes() {
		at := strings.TrimSuffix(g.path, ".")
		switch {
		case at != "" && g.Model == "":
			return fmt.Errorf("%s.model: missing; use tiny if you have no file", at)
		case len(g.Engines)+len(p.Engines) == 0 && (at != "" || len(p.Models) == 0):
			return errors.New("engines: missing")
		case g.plain() && seen[g.Model]:
			return fmt.Errorf("%s: duplicate model %s", at, g.Model)
		}
		seen[g.Model] = seen[g.Model] || g.plain()
		for i, e := range g.Engines {
			switch {
			case e == "":
				return fmt.Errorf("%sengines[%d]: empty", g.path, i)
			case slices.Contains(g.Engines[:i], e):
				return fmt.Errorf("%sengines: duplicate engine %s", g.path, e)
			}
		}
		if err := g.Deployment.validate(g.path); err != nil {
			return err
		}
	}
	return nil
}

func (d Deployment) validate(at string) error {
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if f := v.Field(i); f.CanInt() && f.Int() < 0 || f.CanFloat() && f.Float() < 0 {
			return fmt.Errorf("%s%s: %v is negative", at, name, f)
		}
	}
	if d.GPUMemory > 1 {
		return fmt.Errorf("%sgpu_memory_utilization: %g is out of range; use a share, e.g. 0.9", at, d.GPUMemory)
	}
	return nil
}

func (p Plan) validatePrompts() error {
	for i, prompt := range p.Prompts {
		if err := prompt.validate(); err != nil {
			return fmt.Errorf("prompts[%d]%w", i, err)
		}
		if p.Chat && prompt.Text == "" && prompt.File == "" {
			return errors.New("chat: requires prompts that are texts or files; remove it")
		}
	}
	if p.Chat && (len(p.Prompts) == 0 || p.Traffic != nil && p.Traffic.Turns > 0) {
		return errors.New("chat: requires prompts that are texts or files, and no turns; remove it")
	}
	given := len(p.Prompts) > 0
	mixed := p.Traffic.complete()
	if given && len(p.InputLengths) > 0 {
		return errors.New("input_lengths: cannot be combined with prompts; remove one")
	}
	converses := func(s Prompt) bool { return s.Conversation != nil }
	if p.Traffic != nil && p.Traffic.Turns > 0 && slices.ContainsFunc(p.Prompts, converses) {
		return errors.New("traffic.turns: cannot be combined with a conversation in prompts; remove it")
	}
	for i, g := range p.Models {
		if !given && !mixed && len(p.InputLengths)+len(g.InputLengths) == 0 {
			return fmt.Errorf("models[%d].input_lengths: missing; set prompts or input_lengths", i)
		}
	}
	if !given && !mixed && len(p.InputLengths) == 0 && len(p.Models) == 0 {
		return errors.New("prompts: missing; set prompts or input_lengths")
	}
	return p.validateOutputs()
}

func (p Plan) validateOutputs() error {
	switch {
	case p.MaxTokens > mostTokens:
		return fmt.Errorf("max_tokens: %d is too large; use at most %d", p.MaxTokens, mostTokens)
	case len(p.OutputLengths) > 0 && p.MaxTokens != 0:
		return errors.New("output_lengths: cannot be combined with max_tokens; remove one")
	case p.MaxTokens > 0, len(p.OutputLengths) > 0:
		return nil
	}
	alone := len(p.Prompts) > 0 ||
		slices.ContainsFunc(p.scopes(), func(s scope) bool { return len(s.InputLengths) > 0 })
	mix := p.Traffic.complete() && !alone && all(p.Traffic.Mix, func(k Kind) bool { return k.MaxTokens != 0 })
	traces := all(p.Prompts, func(s Prompt) bool { return s.Trace != "" }) // which have lengths
	models := all(p.Models, func(g Group) bool { return len(g.OutputLengths) > 0 })
	if mix || p.MaxTokens == 0 && (traces || models) {
		return nil
	}
	return fmt.Errorf("max_tokens: %d is too small; use at least 1", p.MaxTokens)
}

// all reports whether there is something in a list, and all of it is so.
func all[T any](list []T, so func(T) bool) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(v T) bool { return !so(v) })
}

func unknown(value string, known []string) error {
	last := len(known) - 1
	return fmt.Errorf("unknown value %.60q; use %s or %s", value, strings.Join(known[:last], ", "), known[last])
}

func (p Plan) validateSchedule() error {
	cold := slices.ContainsFunc(p.scopes(), func(s scope) bool { return slices.Contains(s.Starts, record.ColdStart) })
	if err := p.UntilCI.validate(p); err != nil {
		return err
	}
	if (cold || p.Start == record.ColdStart) && p.Isolation != "" && p.Isolation != OfLaunch {
		return fmt.Errorf("isolation: %s cannot be combined with a cold start; use launch", p.Isolation)
	}
	return nil
}

// validateLoad refuses contradicting loads.
func (p Plan) validateLoad() error {
	several := func(n int) bool { return n > 1 }
	t := cmp.Or(p.Traffic, &Traffic{})
	for _, s := range p.scopes() {
		if len(s.BatchSizes) == 0 {
			s.BatchSizes = p.BatchSizes
		}
		if len(s.Concurrency) == 0 {
			s.Concurrency = p.Concurrency
		}
		for _, c := range []struct {
			set  bool
			what string
		}{{slices.ContainsFunc(s.Concurrency, several), "concurrency; remove one, or set it to 1"},
			{p.traced(), "a trace; remove one"},
			{t.Loop != "" && t.Loop != record.Batch, "traffic.loop: " + t.Loop + "; remove one"},
			{t.Rate > 0, "traffic.rate; remove one"}, {t.Concurrency > 0, "traffic.concurrency; remove one"}} {
			if c.set && slices.ContainsFunc(s.BatchSizes, several) {
				return fmt.Errorf("%sbatch_sizes: cannot be combined with %s", s.path, c.what)
			}
		}
		most := slices.Max(slices.Concat([]int{t.Concurrency}, s.BatchSizes, s.Concurrency))
		if t.Requests > 0 && p.loop(0, 0) != record.OpenLoop && t.Requests/max(1, t.Turns) < most {
			return fmt.Errorf("traffic.requests: %d is less than the %d clients or requests at once", t.Requests, most)
		}
	}
	return nil
}

// validateOf checks the fields that name an engine of the plan.
func (p Plan) validateOf() error {
	for _, f := range []struct{ key, engine string }{{"text_of", p.TextOf}, {"quality_of", p.QualityOf}} {
		measured := func(s scope) bool { return slices.Contains(s.Engines, f.engine) }
		if f.engine != "" && !slices.ContainsFunc(p.scopes(), measured) {
			return fmt.Errorf("%s: %q is not an engine of the plan (%s)", f.key, f.engine, strings.Join(p.Engines, ", "))
		}
	}
	return nil
}
