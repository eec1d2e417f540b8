package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"llmparity/internal/record"
)

// Field is what a plan says in one value: its field, a flag of run, and its row of the schema. What a plan has of its
// own in a field has a row here; Take, Validate, flags and the schema read it.
type Field struct {
	Key        string // with its group's before it
	To         any    // *string, *int, *uint64, *float64, *Duration
	Flag, Help string // empty: it has none
	OneOf      []string
	Least      int
	Most       int    // 0: any
	None       bool   // 0 stands for none
	Such       string // a duration as it may be, or what a number is of
}

// Fields are those of a plan, and of its traffic where it has some.
func (p *Plan) Fields() []Field {
	out := []Field{
		{Key: "repetitions", To: &p.Repetitions, Least: 1, Most: mostRepetitions,
			Flag: "repetitions", Help: "launches of each engine that count"},
		{Key: "warmup.launches", To: &p.Warmup.Launches},
		{Key: "warmup.tokens", To: &p.Warmup.Tokens, Least: 1},
		{Key: "timeout", To: &p.Timeout, Such: "3m", Flag: "timeout",
			Help: "how long a launch may take (default: the plan's)"},
		{Key: "cell_timeout", To: &p.CellTimeout, None: true, Such: "30m", Flag: "cell-timeout",
			Help: "how long all launches of a cell together may take"},
		{Key: "run_timeout", To: &p.RunTimeout, None: true, Such: "8h", Flag: "run-timeout",
			Help: "how long the run may take; what is missing then is made by run --resume"},
		{Key: "cool_down", To: &p.CoolDown, None: true, Such: "10s", Flag: "cool-down",
			Help: "how long the machine rests before each launch"},
		{Key: "watchdog", To: &p.Watchdog, None: true, Such: "1m", Flag: "watchdog",
			Help: "how long that thread, or an engine of exec:, may give no sign of life"},
		{Key: "threads", To: &p.Threads, Least: 1, None: true},
		{Key: "isolation", To: &p.Isolation, OneOf: []string{OfLaunch, Reused, Shared}, Flag: "isolation",
			Help: "what a repetition has of its own: launch (a fresh process, and the model loaded anew; engines take turns), " +
				"reused (nothing: it goes on in the launch of the one before it; one engine after the other) or " +
				"shared (nor has a cell: all of an engine's that need no other launch go on in one)"},
		{Key: "cache", To: &p.Cache, OneOf: []string{record.CacheOff, record.CacheOn}},
		{Key: "order", To: &p.Order, OneOf: []string{Interleaved, Shuffled, Grouped}, Flag: "order",
			Help: "of launches: " + strings.Join([]string{Interleaved, Shuffled, Grouped}, ", ") +
				" (default: " + Interleaved + ")"},
		{Key: "seed", To: &p.Seed, Flag: "seed", Help: "of a shuffled order, of traffic, and of prompts that are made"},
		{Key: "dtype", To: &p.DType, OneOf: DTypes},
		{Key: "kv_cache_dtype", To: &p.KVDType, OneOf: KVDTypes},
		{Key: "start", To: &p.Start, OneOf: Starts},
		{Key: "reference", To: &p.Reference, Flag: "reference",
			Help: "the engine whose text that is (default: the first native one that tells token ids)"},
	}
	if p.Traffic != nil {
		out = append(out, p.Traffic.fields()...)
	}
	return out
}

// fields are those of traffic, and of its goal where it has one.
func (t *Traffic) fields() []Field {
	out := []Field{
		{Key: "traffic.loop", To: &t.Loop, Flag: "loop",
			OneOf: []string{record.ClosedLoop, record.OpenLoop, record.Batch},
			Help:  "how requests come: closed (a client asks again when it was answered), open (at their times, --rate) or batch"},
		{Key: "traffic.requests", To: &t.Requests, None: true, Least: 1, Most: mostRequests, Flag: "requests",
			Help: "requests of a launch, of all clients together (default: four of each client)"},
		{Key: "traffic.rate", To: &t.Rate, Flag: "rate", Help: "requests a second that come whether or not others were answered"},
		{Key: "traffic.arrivals", To: &t.Arrivals, OneOf: []string{record.Constant, record.Poisson}, Flag: "arrivals",
			Help: "of --rate: poisson or constant (default: poisson)"},
		{Key: "traffic.concurrency", To: &t.Concurrency, None: true, Least: 1, Most: mostClients},
		{Key: "traffic.start_delay", To: &t.StartDelay, None: true, Flag: "start-delay",
			Help: "from one client's first request to the next one's"},
		{Key: "traffic.ramp", To: &t.Ramp, None: true, Flag: "ramp", Help: "in which requests come to their --rate"},
		{Key: "traffic.turns", To: &t.Turns, None: true, Least: 1, Most: 1000, Flag: "turns",
			Help: "of a conversation: each prompt begins with all that was said before"},
	}
	if g := t.Goal; g != nil {
		const ms = "a number of milliseconds"
		out = append(out, Field{Key: "traffic.goal.ttft_ms", To: &g.TTFTms, Such: ms, Flag: "goal-ttft",
			Help: "ms to the first token that a request must keep to be a good one (goodput)"},
			Field{Key: "traffic.goal.tpot_ms", To: &g.TPOTms, Such: ms, Flag: "goal-tpot",
				Help: "ms a token that a request must keep to be a good one"},
			Field{Key: "traffic.goal.e2e_ms", To: &g.E2Ems, Such: ms, Flag: "goal-e2e",
				Help: "ms in all that a request must keep to be a good one"})
	}
	return out
}

// Take takes the fields of another plan whose flags were given.
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

// copied is what a pointer has; of none, nothing.
func copied[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return new(*p)
}

// check refuses a value that the field can't have.
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
			return fmt.Errorf("%s: %d, from %d to %d are possible", f.Key, n, f.Least, f.Most)
		case n < f.Least:
			return fmt.Errorf("%s: %d, at least %d is needed", f.Key, n, f.Least)
		default:
			return fmt.Errorf("%s: %d, at most %d are possible", f.Key, n, f.Most)
		}
	case *Duration:
		switch {
		case *to > 0, *to == 0 && f.None:
		case f.Such == "":
			return fmt.Errorf("%s: %s is less than none", f.Key, time.Duration(*to))
		case f.None:
			return fmt.Errorf("%s: a duration such as %s is needed, or 0 for none", f.Key, f.Such)
		default:
			return fmt.Errorf("%s: a duration such as %s is needed", f.Key, f.Such)
		}
	case *float64:
		if f.Such != "" && *to < 0 {
			return fmt.Errorf("%s: %g, %s is needed", f.Key, *to, f.Such)
		}
	}
	return nil
}
