// Package traffic makes the schedule of a record.Traffic and drives it: which request is due when, in which order they
// are sent, and when each was really sent.
//
// A schedule depends on the traffic and its seed alone, never on how quick an engine is: the same requests come from
// the same clients, in the same order, with the same prompts, in every engine. What an engine decides is when a closed
// loop goes on: a request that follows another is due when that one was answered.
//
// No time is hidden. A request keeps the time at which it was due, however long it waits for a place; what the waiting
// is due to, an engine that has no place free or this package's own lateness, can be told apart. The package knows
// nothing of engines and of prompts: who drives it sends the requests.
package traffic

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// Most is how many requests a schedule may have: each is kept in memory until all have been answered.
const Most = 1_000_000

// Request is one of a schedule.
type Request struct {
	Index        int // from 0, in the schedule's order
	Client       int // from 1
	Conversation int // from 0; each request is one of its own where there are no turns
	Turn         int // from 1; 0: there are no conversations
	Kind         int // index into Traffic.Mix; 0 where there is none

	Slot   int       // of those that may go on at once, from 0: set when it is sent
	Due    time.Time // set when it is known
	Before string    // what the turn before returned: all that was said until then; empty at a conversation's beginning
	// Late is how long it was sent after it was due and had a place: our own doing, no engine's. Set when it is sent.
	Late time.Duration
}

// KindName is the name of a request's kind; empty where all are alike.
func (s Schedule) KindName(r Request) string {
	if r.Kind < len(s.traffic.Mix) {
		return s.traffic.Mix[r.Kind].Name
	}
	return ""
}

// Schedule is the requests of a traffic, in the order of their clients' turns.
type Schedule struct {
	traffic record.Traffic
	planned []planned
	batches int // 0: requests follow one another client by client
}

// planned is a request with when it is due: so long after the beginning, or, where it follows another or a batch, at
// once after that.
type planned struct {
	Request
	after   time.Duration
	follows int // index of a request; free: none
	batch   int // it belongs to; one is due when the one before was answered
}

const free = -1

// New makes the schedule of a traffic.
func New(t record.Traffic) (Schedule, error) {
	if err := check(t); err != nil {
		return Schedule{}, err
	}
	s := Schedule{traffic: t, planned: make([]planned, 0, t.Requests)}
	turns := max(1, t.Turns)
	kinds := deal(t, t.Requests/turns)
	switch t.Loop {
	case record.OpenLoop:
		for c, at := range arrivals(t, t.Requests/turns) {
			s.converse(c, c+1, kinds[c], at, free)
		}
	case record.ClosedLoop:
		last := map[int]int{}
		for c := range t.Requests / turns {
			client := c % t.Concurrency
			at, follows := delay(t, client), free
			if before, ok := last[client]; ok {
				follows = before
			}
			last[client] = s.converse(c, client+1, kinds[c], at, follows)
		}
	case record.Batch:
		s.batch(kinds)
	}
	return s, nil
}

// converse plans a conversation and gives the index of its last request.
func (s *Schedule) converse(conversation, client, kind int, at time.Duration, follows int) int {
	for turn := range max(1, s.traffic.Turns) {
		r := Request{Index: len(s.planned), Client: client, Conversation: conversation, Kind: kind}
		if s.traffic.Turns > 0 {
			r.Turn = turn + 1
		}
		s.planned = append(s.planned, planned{Request: r, after: at, follows: follows})
		follows = r.Index
	}
	return follows
}

// batch plans batches of as many requests as there are clients; conversations' turns are batches one after another.
func (s *Schedule) batch(kinds []int) {
	size, turns := s.traffic.Concurrency, max(1, s.traffic.Turns)
	for first := 0; first < len(kinds); first += size {
		for turn := range turns {
			for c := first; c < min(first+size, len(kinds)); c++ {
				r := Request{Index: len(s.planned), Client: c - first + 1, Conversation: c, Kind: kinds[c]}
				if s.traffic.Turns > 0 {
					r.Turn = turn + 1
				}
				s.planned = append(s.planned,
					planned{Request: r, after: delay(s.traffic, c-first), follows: free, batch: s.batches})
			}
			s.batches++
		}
	}
}

// Requests are all that will be sent. Their times and slots are not known before.
func (s Schedule) Requests() []Request {
	all := make([]Request, 0, len(s.planned))
	for _, p := range s.planned {
		all = append(all, p.Request)
	}
	return all
}

// delay is how much later than the first client's another client's first request is due.
func delay(t record.Traffic, client int) time.Duration {
	return seconds(float64(client) * t.StartDelay)
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// arrivals are when the conversations of an open loop begin. Where it ramps, its rate grows evenly from nothing, so
// that as many come in the ramp as would in half its time.
func arrivals(t record.Traffic, n int) []time.Duration {
	random := random(t.Seed, arriving)
	at := make([]time.Duration, n)
	come := 0.0 // how many were to come by then
	for i := range at {
		switch {
		case t.Arrivals == record.TraceArrivals:
			at[i] = seconds(t.Trace[i].At)
			continue
		case t.Arrivals == record.Poisson:
			come += random.ExpFloat64()
		case i > 0:
			come++
		}
		at[i] = seconds(reached(come, t.Rate, t.Ramp))
	}
	return at
}

// reached is when so many have come.
func reached(n, rate, ramp float64) float64 {
	if inRamp := rate * ramp / 2; n < inRamp {
		return math.Sqrt(2 * ramp * n / rate)
	}
	return n/rate + ramp/2
}

// What random numbers are for: one does not change with how many another takes.
const (
	arriving = iota + 1
	dealing
)

func random(seed, purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, purpose)) }

// deal gives each of n conversations a kind: as many of each as its share says, as nearly as whole numbers can, in an
// order that the seed makes. In a batch's every batch is a like mix.
func deal(t record.Traffic, n int) []int {
	dealt := make([]int, n)
	if len(t.Mix) == 0 {
		return dealt
	}
	total := 0.0
	for _, k := range t.Mix {
		total += k.Share
	}
	had := make([]float64, len(t.Mix))
	for i := range dealt { // the one that lacks most of what it is owed by now
		lack := func(k int) float64 { return t.Mix[k].Share/total*float64(i+1) - had[k] }
		best := 0
		for k := range t.Mix {
			if lack(k) > lack(best)+1e-9 {
				best = k
			}
		}
		dealt[i] = best
		had[best]++
	}
	block := n
	if t.Loop == record.Batch {
		block = t.Concurrency
	}
	random := random(t.Seed, dealing)
	for first := 0; first < n; first += block {
		part := dealt[first:min(first+block, n)]
		random.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	return dealt
}

// check refuses a traffic that can't be.
func check(t record.Traffic) error {
	bad := func(do, format string, args ...any) error {
		return fault.New(fault.Usage, do, "traffic: "+format, args...)
	}
	if !slices.Contains([]string{record.ClosedLoop, record.OpenLoop, record.Batch}, t.Loop) {
		return bad("use closed, open or batch", "no loop %q is known", t.Loop)
	}
	for _, f := range []struct {
		name string
		n    float64
	}{{"rate", t.Rate}, {"start_delay", t.StartDelay}, {"ramp", t.Ramp}} {
		if f.n < 0 || math.IsNaN(f.n) || f.n > 1e6 {
			return bad("", "%s is %v: it must be a number from 0 to a million", f.name, f.n)
		}
	}
	switch turns := max(1, t.Turns); {
	case t.Requests < 1 || t.Requests > Most:
		return bad("", "requests is %d: it must be from 1 to %d", t.Requests, Most)
	case t.Turns < 0 || t.Requests%turns != 0:
		return bad("let requests be a multiple of turns", "%d requests can't be conversations of %d turns", t.Requests,
			t.Turns)
	case t.Concurrency < 0 || t.Concurrency == 0 && t.Loop != record.OpenLoop:
		return bad("", "concurrency is %d: it must be at least 1", t.Concurrency)
	case t.Loop == record.OpenLoop && !slices.Contains([]string{record.Constant, record.Poisson, record.TraceArrivals},
		t.Arrivals):
		return bad("use constant or poisson", "no arrivals %q are known", t.Arrivals)
	case t.Loop == record.OpenLoop && t.Arrivals != record.TraceArrivals && t.Rate < 1e-6:
		return bad("say how many requests come in a second", "an open loop needs a rate")
	}
	for _, k := range t.Mix {
		if !(k.Share > 0) || math.IsInf(k.Share, 0) {
			return bad("", "the share of the kind %q is %v: it must be more than 0", cmp.Or(k.Name, "without a name"),
				k.Share)
		}
	}
	return checkTrace(t)
}

// checkTrace refuses a trace that does not say when its requests come.
func checkTrace(t record.Traffic) error {
	if t.Loop != record.OpenLoop || t.Arrivals != record.TraceArrivals {
		return nil
	}
	if n := t.Requests / max(1, t.Turns); len(t.Trace) < n {
		return fault.New(fault.Usage, "", "traffic: the trace has %d requests, and %d are to be sent", len(t.Trace), n)
	}
	last := 0.0
	for i, a := range t.Trace {
		if !(a.At >= last) || a.At > 1e9 {
			return fault.New(fault.Usage, "", "traffic: request %d of the trace comes at %v s, the one before at %v s",
				i+1, a.At, last)
		}
		last = a.At
	}
	return nil
}
