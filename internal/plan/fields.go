package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"llmparity/internal/record"
)

// Field describes a field of a plan that has one value. Flags, validation and the schema are derived from it.
type Field struct {
	Key        string // with the key of its group
	To         any    // *string, *int, *uint64, *float64, *Duration
	Flag, Help string // of run; empty: it has none
	OneOf      []string
	Least      int
	Most       int    // 0: no maximum
	None       bool   // 0 means none
	Such       string // an example of a duration, or the unit of a number
}

// Fields are the fields of a plan, and of its traffic if it has any.
func (p *Plan) Fields() []Field {
	out := []Field{
		{Key: "repetitions", To: &p.Repetitions, Least: 1, Most: mostRepetitions,
			Flag: "repetitions", Help: "measured launches of each cell"},
		{Key: "warmup.launches", To: &p.Warmup.Launches},
		{Key: "warmup.tokens", To: &p.Warmup.Tokens, Least: 1},
		{Key: "timeout", To: &p.Timeout, Such: "3m", Flag: "timeout",
			Help: "time limit of a launch (default: the plan's)"},
		{Key: "cell_timeout", To: &p.CellTimeout, None: true, Such: "30m", Flag: "cell-timeout",
			Help: "time limit of all launches of a cell"},
		{Key: "run_timeout", To: &p.RunTimeout, None: true, Such: "8h", Flag: "run-timeout",
			Help: "time limit of the run; --resume continues it"},
		{Key: "cool_down", To: &p.CoolDown, None: true, Such: "10s", Flag: "cool-down",
			Help: "pause before each launch"},
		{Key: "watchdog", To: &p.Watchdog, None: true, Such: "1m", Flag: "watchdog",
			Help: "how long a page or an exec: engine may be silent before the launch fails"},
		{Key: "threads", To: &p.Threads, Least: 1, None: true},
		{Key: "isolation", To: &p.Isolation, OneOf: []string{OfLaunch, Reused, Shared}, Flag: "isolation",
			Help: "launch: a process per repetition; reused: one per cell; shared: one per engine and its start settings"},
		{Key: "cache", To: &p.Cache, OneOf: []string{record.CacheOff, record.CacheOn}},
		{Key: "order", To: &p.Order, OneOf: []string{Interleaved, Shuffled, Grouped}, Flag: "order",
			Help: "order of launches: interleaved, shuffled or grouped (default interleaved)"},
		{Key: "seed", To: &p.Seed, Flag: "seed", Help: "random seed of the shuffled order, traffic and generated prompts"},
		{Key: "dtype", To: &p.DType, OneOf: DTypes},
		{Key: "kv_cache_dtype", To: &p.KVDType, OneOf: KVDTypes},
		{Key: "start", To: &p.Start, OneOf: Starts},
		{Key: "reference", To: &p.Reference, Flag: "reference",
			Help: "engine whose text is scored (default: the first native engine that reports token ids)"},
	}
	if p.Traffic != nil {
		out = append(out, p.Traffic.fields()...)
	}
	return out
}

// fields are the fields of traffic, and of its goal if it has one.
func (t *Traffic) fields() []Field {
	out := []Field{
		{Key: "traffic.loop", To: &t.Loop, Flag: "loop",
			OneOf: []string{record.ClosedLoop, record.OpenLoop, record.Batch},
			Help:  "closed: a client sends its next request after an answer; open: requests arrive at --rate; batch: all at once"},
		{Key: "traffic.requests", To: &t.Requests, None: true, Least: 1, Most: mostRequests, Flag: "requests",
			Help: "requests per launch, of all clients together (default: 4 per client)"},
		{Key: "traffic.rate", To: &t.Rate, Flag: "rate", Help: "requests per second of an open loop"},
		{Key: "traffic.arrivals", To: &t.Arrivals, OneOf: []string{record.Constant, record.Poisson}, Flag: "arrivals",
			Help: "arrivals of an open loop: poisson or constant (default poisson)"},
		{Key: "traffic.concurrency", To: &t.Concurrency, None: true, Least: 1, Most: mostClients},
		{Key: "traffic.start_delay", To: &t.StartDelay, None: true, Flag: "start-delay",
			Help: "delay between the first requests of two clients"},
		{Key: "traffic.ramp", To: &t.Ramp, None: true, Flag: "ramp", Help: "time in which an open loop reaches --rate"},
		{Key: "traffic.turns", To: &t.Turns, None: true, Least: 1, Most: 1000, Flag: "turns",
			Help: "turns of a conversation; each prompt contains the turns before it"},
	}
	if g := t.Goal; g != nil {
		const ms = "a number of milliseconds"
		out = append(out, Field{Key: "traffic.goal.ttft_ms", To: &g.TTFTms, Such: ms, Flag: "goal-ttft",
			Help: "goodput: maximum time to first token in ms"},
			Field{Key: "traffic.goal.tpot_ms", To: &g.TPOTms, Such: ms, Flag: "goal-tpot",
				Help: "goodput: maximum time per output token in ms"},
			Field{Key: "traffic.goal.e2e_ms", To: &g.E2Ems, Such: ms, Flag: "goal-e2e",
				Help: "goodput: maximum time of the whole request in ms"})
	}
	return out
}

// Take copies the fields of another plan whose flags were given.
func (p *Plan) Take(said *Plan, given func(flag string) bool) {
	for _, f := range said.Fields() {
		if f.Flag == "" || !given(f.Flag) {
			continue
		}
		if strings.HasPrefix(f.Key, "traffic.") { // copies of the plan share it
			p.Traffic = copied(p.Traffic)
		}
		if strings.HasPrefix(f.Key, "traffic.goal.") {
			p.Traffic.Goal = copied(p.Traffic.Goal)
		}
		own := p.Fields()
		i := slices.IndexFunc(own, func(o Field) bool { return o.Key == f.Key })
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
func (f Field) check() error {
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
