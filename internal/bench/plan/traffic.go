package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"llmparity/internal/record"
)

// Traffic describes how requests arrive. Without traffic, a launch measures one request. To measure several numbers of
// clients or batch sizes, use the plan's concurrency or batch_sizes instead.
type Traffic struct {
	// Kind of load. closed: clients send their next request after an answer; open: requests arrive at a rate; batch:
	// requests are sent at once. Default: open with rate, batch with batch_sizes, else closed.
	Loop string `yaml:"loop,omitempty"`
	// Clients of a closed loop, requests in a batch, or maximum of unanswered requests in an open loop. Default: 1; in
	// an open loop, no limit.
	Concurrency int `yaml:"concurrency,omitempty"`
	// Requests per launch, of all clients together. Default: 4 per client; 1 per client of a batch; 20 in an open loop.
	Requests int `yaml:"requests,omitempty"`
	// Arrivals of an open loop: poisson or constant. Default: poisson.
	Arrivals string `yaml:"arrivals,omitempty"`
	// Requests per second of an open loop, e.g. 2.
	Rate float64 `yaml:"rate,omitempty"`
	// Delay between the first requests of two clients, e.g. 500ms. Default: none.
	StartDelay Duration `yaml:"start_delay,omitempty"`
	// Time in which an open loop reaches its rate, e.g. 10s. Default: none.
	Ramp Duration `yaml:"ramp,omitempty"`
	// Random seed of arrivals and of the mix. Default: the plan's seed.
	Seed uint64 `yaml:"seed,omitempty"`
	// Turns of a conversation. Each prompt contains the turns before it. Default: no conversations.
	Turns int `yaml:"turns,omitempty"`
	// Kinds of requests, if they are not all alike.
	Mix []Kind `yaml:"mix,omitempty"`
	// Limits that a request must keep to count for goodput.
	Goal *record.Goal `yaml:"goal,omitempty"`
}

// Kind is a kind of requests in a mix.
type Kind struct {
	// Name in results, e.g. short.
	Name string `yaml:"name"`
	// Share of all requests, e.g. 0.75. Either all kinds have a share, or none has. Without shares, all kinds are
	// equally frequent.
	Share float64 `yaml:"share,omitempty"`
	// Prompt of these requests. Default: the cell's.
	Prompt string `yaml:"prompt,omitempty"`
	// Length of a generated prompt in tokens, instead of prompt.
	InputTokens int `yaml:"input_length,omitempty"`
	// Number of tokens to generate. Default: the cell's.
	MaxTokens int `yaml:"output_length,omitempty"`
}

// Defaults and limits.
const (
	eachClient  = 4  // requests
	inOpenLoop  = 20 // requests
	openSlots   = 4  // slots of an engine in an open loop without a maximum
	mostClients = 10_000
)

// complete reports whether each kind of the mix has a prompt, so that the plan needs none.
func (t *Traffic) complete() bool {
	return t != nil && all(t.Mix, func(k Kind) bool { return k.Prompt != "" || k.InputTokens != 0 })
}

// loop is the kind of load, or its default.
func (p Plan) loop(batch, clients int) string {
	t := p.Traffic
	switch {
	case t != nil && t.Loop != "":
		return t.Loop
	case t != nil && t.Rate > 0:
		return record.OpenLoop
	case batch > 0 && clients <= 1:
		return record.Batch
	}
	return record.ClosedLoop
}

// traffic returns how the requests of a cell arrive, whose prompt is from a source, or nil; nil: one request. batch and
// clients are the axes' values, 0 if there is no such axis.
func (p Plan) traffic(batch, clients int, c *record.Cell, from *Source) *record.Traffic {
	many := from != nil && from.File == ""
	if p.Traffic == nil && !many && p.single() {
		return nil
	}
	var said Traffic
	if p.Traffic != nil {
		said = *p.Traffic
	}
	t := &record.Traffic{Loop: p.loop(batch, clients), Turns: said.Turns, StartDelay: seconds(said.StartDelay),
		Seed: cmp.Or(said.Seed, p.Seed)}
	if many && from.Trace != "" { // it has the arrival times
		t.Loop, t.StartDelay = record.OpenLoop, 0
	}
	t.Concurrency = cmp.Or(max(batch, clients), said.Concurrency)
	if t.Concurrency == 0 && t.Loop != record.OpenLoop {
		t.Concurrency = 1
	}
	t.Goal = said.Goal
	if t.Loop == record.OpenLoop {
		t.Arrivals, t.Rate, t.Ramp = cmp.Or(said.Arrivals, record.Poisson), said.Rate, seconds(said.Ramp)
	}
	if many && from.Conversation != nil {
		t.Turns = len(from.Conversation)
	}
	t.Requests = cmp.Or(said.Requests, usual(t))
	switch {
	case many && from.Trace != "":
		t.Arrivals, t.Rate, t.Ramp, t.Requests = record.TraceArrivals, 0, 0, from.Limit
	case many && from.Dataset != "" && said.Requests == 0:
		t.Requests = cmp.Or(from.Limit, t.Requests)
	}
	t.Mix = said.mixOf(c)
	return t
}

// single reports whether the axes describe a single request.
func (p Plan) single() bool {
	more := func(n int) bool { return n != 1 }
	return !slices.ContainsFunc(p.scopes(), func(s scope) bool {
		return slices.ContainsFunc(s.BatchSizes, more) || slices.ContainsFunc(s.Concurrency, more)
	})
}

func seconds(d Duration) float64 { return time.Duration(d).Seconds() }

// usual is the default number of requests.
func usual(t *record.Traffic) int {
	switch turns := max(1, t.Turns); {
	case t.Loop == record.OpenLoop:
		return inOpenLoop * turns
	case t.Turns > 0 || t.Loop == record.Batch:
		return t.Concurrency * turns
	}
	return t.Concurrency * eachClient
}

// mixOf are the kinds of the mix, with the cell's defaults.
func (t Traffic) mixOf(c *record.Cell) []record.Kind {
	var out []record.Kind
	for _, k := range t.Mix {
		made := record.Kind{Name: k.Name, Share: cmp.Or(k.Share, 1/float64(len(t.Mix))), Prompt: k.Prompt,
			InputTokens: k.InputTokens,
			MaxTokens:   cmp.Or(k.MaxTokens, c.MaxTokens)}
		if k.Prompt == "" && k.InputTokens == 0 {
			made.Prompt, made.InputTokens = c.Prompt, c.InputTokens
		}
		out = append(out, made)
	}
	return out
}

func (t *Traffic) validate(p Plan) error {
	if t == nil {
		return nil
	}
	return cmp.Or(t.sizes(p), t.pace(p), t.mix())
}

// sizes checks the numbers of requests and clients.
func (t *Traffic) sizes(p Plan) error {
	switch {
	case t.Goal != nil && *t.Goal == (record.Goal{}):
		return errors.New("traffic.goal: empty; set ttft_ms, tpot_ms or e2e_ms")
	case t.Concurrency > 0 && len(p.Concurrency) > 0:
		return errors.New("traffic.concurrency: cannot be combined with concurrency; remove one")
	}
	turns := []int{t.Turns}
	for _, s := range p.Prompts {
		turns = append(turns, len(s.Conversation))
	}
	for _, n := range turns {
		if n > 0 && t.Requests%n != 0 {
			return fmt.Errorf("traffic.requests: %d is not a multiple of the %d turns of a conversation", t.Requests, n)
		}
	}
	return nil
}

// pace checks when requests arrive.
func (t *Traffic) pace(p Plan) error {
	loop := p.loop(0, 0)
	switch {
	case !(t.Rate >= 0 && t.Rate <= 1e6):
		return fmt.Errorf("traffic.rate: %g is out of range; use up to 1000000 requests per second", t.Rate)
	case loop == record.OpenLoop && t.Rate < 1e-6 && !p.traced():
		return errors.New("traffic.loop: an open loop needs a rate in requests per second, e.g. rate: 2")
	case loop == record.OpenLoop && t.StartDelay > 0:
		return errors.New("traffic.start_delay: not supported in an open loop; use ramp")
	case loop == record.OpenLoop:
		return nil
	case t.Rate > 0:
		return fmt.Errorf("traffic.rate: requires loop: open, not %s; remove rate or loop", loop)
	case t.Arrivals != "":
		return errors.New("traffic.arrivals: requires loop: open and a rate")
	case t.Ramp > 0:
		return errors.New("traffic.ramp: requires loop: open; use start_delay")
	}
	return nil
}

// mix checks the kinds of requests.
func (t *Traffic) mix() error {
	shares := 0
	for i, k := range t.Mix {
		at := fmt.Sprintf("traffic.mix[%d]", i)
		switch {
		case k.Name == "":
			return fmt.Errorf("%s.name: missing; use names such as short and long", at)
		case slices.ContainsFunc(t.Mix[:i], func(o Kind) bool { return o.Name == k.Name }):
			return fmt.Errorf("%s.name: duplicate name %s", at, k.Name)
		case !(k.Share >= 0 && k.Share <= 1e6):
			return fmt.Errorf("%s.share: %g is invalid; use a share of all requests, e.g. 0.75", at, k.Share)
		case k.Prompt != "" && k.InputTokens != 0:
			return fmt.Errorf("%s.input_length: cannot be combined with prompt; remove one", at)
		case k.InputTokens < 0 || k.InputTokens > mostTokens:
			return fmt.Errorf("%s.input_length: %d is out of range; use 1 to %d", at, k.InputTokens, mostTokens)
		case k.MaxTokens < 0 || k.MaxTokens > mostTokens:
			return fmt.Errorf("%s.output_length: %d is out of range; use 1 to %d", at, k.MaxTokens, mostTokens)
		}
		if k.Share > 0 {
			shares++
		}
	}
	if shares > 0 && shares < len(t.Mix) {
		i := slices.IndexFunc(t.Mix, func(k Kind) bool { return k.Share == 0 })
		return fmt.Errorf("traffic.mix[%d].share: missing; set it for all kinds or for none", i)
	}
	return nil
}

// traced reports whether some prompts come from a trace.
func (p Plan) traced() bool {
	return slices.ContainsFunc(p.Prompts, func(s Prompt) bool { return s.Trace != "" })
}
