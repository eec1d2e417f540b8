package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"llmparity/internal/record"
)

// Traffic is how requests come where cells measure more than one each. Clients of a closed loop, or the requests of a
// batch, are axes too: concurrency, batch_sizes.
type Traffic struct {
	// closed, open, batch; empty: open with a rate, batch with batch_sizes, else closed
	Loop string `yaml:"loop,omitempty"`
	// clients; a batch's requests; the most that an open loop sends unanswered; 0: the axis' own
	Concurrency int `yaml:"concurrency,omitempty"`
	// of all clients together; 0: four of each, one in a batch, 20 in an open loop
	Requests   int      `yaml:"requests,omitempty"`
	Arrivals   string   `yaml:"arrivals,omitempty"`    // of an open loop: constant, poisson; empty: poisson
	Rate       float64  `yaml:"rate,omitempty"`        // of an open loop, in requests a second
	StartDelay Duration `yaml:"start_delay,omitempty"` // from one client's first request to the next one's
	Ramp       Duration `yaml:"ramp,omitempty"`        // in which an open loop comes to its rate
	Seed       uint64   `yaml:"seed,omitempty"`        // 0: the plan's
	// of a conversation, which each client has one of unless requests say otherwise
	Turns int    `yaml:"turns,omitempty"`
	Mix   []Kind `yaml:"mix,omitempty"`  // kinds of requests, where they are not all alike
	Goal  *Goal  `yaml:"goal,omitempty"` // what a request must keep to be counted as a good one
}

// Kind is requests that are alike, among others that are not.
type Kind struct {
	Name   string  `yaml:"name"`
	Share  float64 `yaml:"share,omitempty"` // of all requests; 0 in all of them: equal ones
	Prompt string  `yaml:"prompt,omitempty"`
	// in tokens, in place of a prompt; without either it is the cell's
	InputTokens int `yaml:"input_length,omitempty"`
	MaxTokens   int `yaml:"output_length,omitempty"` // in tokens; 0: the cell's
}

// Goal is what a request must keep to be counted as a good one; what is 0 is not looked at.
type Goal struct {
	TTFTms float64 `yaml:"ttft_ms,omitempty"`
	TPOTms float64 `yaml:"tpot_ms,omitempty"`
	E2Ems  float64 `yaml:"e2e_ms,omitempty"`
}

// What is done where a plan doesn't say.
const (
	eachClient  = 4  // requests
	inOpenLoop  = 20 // requests
	openSlots   = 4  // that an engine is launched with where any number of requests may come at once
	mostClients = 10_000
)

// complete tells whether each kind of requests has a prompt of its own, so that the plan needs none.
func (t *Traffic) complete() bool {
	if t == nil || len(t.Mix) == 0 {
		return false
	}
	return !slices.ContainsFunc(t.Mix, func(k Kind) bool { return k.Prompt == "" && k.InputTokens == 0 })
}

// loop is the one of a section that may not say it.
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

// traffic is how a shape's requests come; nil: there is one. batch and clients are the axes' values, 0 where there is
// no such axis.
func (p Plan) traffic(batch, clients int, s Shape) *record.Traffic {
	many := s.Source != nil && s.Source.File == ""
	if p.Traffic == nil && !many && p.single() {
		return nil
	}
	var said Traffic
	if p.Traffic != nil {
		said = *p.Traffic
	}
	t := &record.Traffic{Loop: p.loop(batch, clients), Turns: said.Turns, StartDelay: seconds(said.StartDelay),
		Seed: cmp.Or(said.Seed, p.Seed)}
	if many && s.Source.Trace != "" { // it says itself how requests come
		t.Loop, t.StartDelay = record.OpenLoop, 0
	}
	t.Concurrency = cmp.Or(max(batch, clients), said.Concurrency)
	if t.Concurrency == 0 && t.Loop != record.OpenLoop {
		t.Concurrency = 1
	}
	if said.Goal != nil {
		t.Goal = new(record.Goal(*said.Goal))
	}
	if t.Loop == record.OpenLoop {
		t.Arrivals, t.Rate, t.Ramp = cmp.Or(said.Arrivals, record.Poisson), said.Rate, seconds(said.Ramp)
	}
	if many && s.Source.Conversation != nil {
		t.Turns = len(s.Source.Conversation)
	}
	t.Requests = cmp.Or(said.Requests, usual(t))
	switch {
	case many && s.Source.Trace != "":
		t.Arrivals, t.Rate, t.Ramp, t.Requests = record.TraceArrivals, 0, 0, s.Source.Limit
	case many && s.Source.Dataset != "" && said.Requests == 0:
		t.Requests = cmp.Or(s.Source.Limit, t.Requests)
	}
	t.Mix = said.kinds(s)
	return t
}

// single tells that the axes say no more than that there is one request.
func (p Plan) single() bool {
	more := func(n int) bool { return n != 1 }
	return !slices.ContainsFunc(p.scopes(), func(s scope) bool {
		return slices.ContainsFunc(s.BatchSizes, more) || slices.ContainsFunc(s.Concurrency, more)
	})
}

func seconds(d Duration) float64 { return time.Duration(d).Seconds() }

// usual is how many requests are sent where nobody says it.
func usual(t *record.Traffic) int {
	switch turns := max(1, t.Turns); {
	case t.Loop == record.OpenLoop:
		return inOpenLoop * turns
	case t.Turns > 0 || t.Loop == record.Batch:
		return t.Concurrency * turns
	}
	return t.Concurrency * eachClient
}

// kinds are those of a mix, with what the cell has where they don't say it.
func (t Traffic) kinds(s Shape) []record.Kind {
	var out []record.Kind
	for _, k := range t.Mix {
		made := record.Kind{Name: k.Name, Share: cmp.Or(k.Share, 1/float64(len(t.Mix))), Prompt: k.Prompt,
			InputTokens: k.InputTokens,
			MaxTokens:   cmp.Or(k.MaxTokens, s.MaxTokens)}
		if k.Prompt == "" && k.InputTokens == 0 {
			made.Prompt, made.InputTokens = s.Prompt, s.InputTokens
		}
		out = append(out, made)
	}
	return out
}

// validate looks at a section that is there.
func (t *Traffic) validate(p Plan) error {
	if t == nil {
		return nil
	}
	for _, check := range []func(Plan) error{t.sizes, t.pace, t.mix} {
		if err := check(p); err != nil {
			return err
		}
	}
	return nil
}

// sizes looks at how many requests there are, and of how many clients.
func (t *Traffic) sizes(p Plan) error {
	switch turns := max(1, t.Turns); {
	case t.Goal != nil && *t.Goal == (Goal{}):
		return errors.New("traffic.goal: it asks for nothing; give ttft_ms, tpot_ms or e2e_ms")
	case t.Concurrency > 0 && len(p.Concurrency) > 0:
		return errors.New("traffic.concurrency: the axis concurrency says it too; leave one out")
	case t.Requests%turns != 0:
		return fmt.Errorf("traffic.requests: %d can't be conversations of %d turns; use a multiple of it", t.Requests,
			turns)
	}
	for _, s := range p.Sources {
		if n := len(s.Conversation); n > 0 && t.Requests%n != 0 {
			return fmt.Errorf("traffic.requests: %d can't be the conversation among prompts, which has %d turns; use a multiple of it", t.Requests, n)
		}
	}
	return nil
}

// pace looks at when requests come.
func (t *Traffic) pace(p Plan) error {
	loop := p.loop(0, 0)
	switch {
	case !(t.Rate >= 0 && t.Rate <= 1e6):
		return fmt.Errorf("traffic.rate: %g, a number of requests a second up to a million is needed", t.Rate)
	case loop == record.OpenLoop && t.Rate < 1e-6 && !p.traced():
		return errors.New("traffic.loop: an open loop needs a rate; add rate: 2, in requests a second")
	case loop == record.OpenLoop && t.StartDelay > 0:
		return errors.New("traffic.start_delay: an open loop has no clients to begin one after another; use ramp")
	case loop == record.OpenLoop:
		return nil
	case t.Rate > 0:
		return fmt.Errorf("traffic.rate: a loop that is %s has none: its requests come when others were answered; leave out rate or loop", loop)
	case t.Arrivals != "":
		return errors.New("traffic.arrivals: only an open loop has them; use loop: open with a rate")
	case t.Ramp > 0:
		return errors.New("traffic.ramp: only an open loop comes to a rate; use start_delay")
	}
	return nil
}

// mix looks at the kinds of requests.
func (t *Traffic) mix(Plan) error {
	shares := 0
	for i, k := range t.Mix {
		at := fmt.Sprintf("traffic.mix[%d]", i)
		switch {
		case k.Name == "":
			return fmt.Errorf("%s.name: it has none: figures are told by it, as in short and long", at)
		case slices.ContainsFunc(t.Mix[:i], func(o Kind) bool { return o.Name == k.Name }):
			return fmt.Errorf("%s.name: %s is there already", at, k.Name)
		case !(k.Share >= 0 && k.Share <= 1e6):
			return fmt.Errorf("%s.share: %g, a part of all requests is needed, as in 0.75", at, k.Share)
		case k.Prompt != "" && k.InputTokens != 0:
			return fmt.Errorf("%s.input_length: prompt says what is asked; leave one out", at)
		case k.InputTokens < 0 || k.InputTokens > mostTokens:
			return fmt.Errorf("%s.input_length: %d, from 1 to %d are possible", at, k.InputTokens, mostTokens)
		case k.MaxTokens < 0 || k.MaxTokens > mostTokens:
			return fmt.Errorf("%s.output_length: %d, from 1 to %d are possible", at, k.MaxTokens, mostTokens)
		}
		if k.Share > 0 {
			shares++
		}
	}
	if shares > 0 && shares < len(t.Mix) {
		i := slices.IndexFunc(t.Mix, func(k Kind) bool { return k.Share == 0 })
		return fmt.Errorf("traffic.mix[%d].share: others have one; give each one, or none", i)
	}
	return nil
}

// traced tells that some prompts are a trace's.
func (p Plan) traced() bool {
	return slices.ContainsFunc(p.Sources, func(s Source) bool { return s.Trace != "" })
}
