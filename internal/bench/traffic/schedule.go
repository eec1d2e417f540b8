// Package traffic schedules the requests of a record.Traffic and sends them: when each is due, in which order they are
// sent, and when each was really sent.
//
// A schedule depends only on the traffic and its seed, not on the engine's speed: every engine gets the same requests
// from the same clients, in the same order, with the same prompts. The engine only determines when a closed loop
// continues: a request that follows another is due when that one is answered.
//
// A request keeps its due time, however long it waits. Whether it waited for a free place in the engine, or because
// this package was late, can be distinguished. The package knows nothing about engines and prompts; its caller sends
// the requests.
package traffic

import (
	"math"
	"math/rand/v2"
	"time"

	"llmparity/internal/record"
)

// Request is one request of a schedule.
type Request struct {
	Index        int // from 0, in the schedule's order
	Client       int // from 1
	Conversation int // from 0; without turns, each request has its own
	Turn         int // from 1; 0: no conversations
	Kind         int // index into Traffic.Mix; 0 without one

	Slot   int       // from 0, among simultaneous ones; set when sent
	Due    time.Time // set when known
	Before string    // the conversation so far, as returned by the previous turn
	// Late is how long after it was due and had a place it was sent, which is our fault. Set when sent.
	Late time.Duration
}

// KindName returns the name of a request's kind; empty if all are alike.
func (s Schedule) KindName(r Request) string {
	if r.Kind < len(s.traffic.Mix) {
		return s.traffic.Mix[r.Kind].Name
	}
	return ""
}

// Schedule has the requests of a traffic, in order of their clients' turns.
type Schedule struct {
	traffic record.Traffic
	planned []planned
	follows []int // by stage: the stage that must be answered before; free: none
}

// planned is a request. It is due some time after its stage begins. A stage is one request, or a batch.
type planned struct {
	Request
	stage int
	after time.Duration
}

const free = -1

// New makes the schedule of a traffic, which package plan has checked.
func New(t record.Traffic) Schedule {
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
			after, follows := delay(t, client), free
			if before, ok := last[client]; ok {
				after, follows = 0, before
			}
			last[client] = s.converse(c, client+1, kinds[c], after, follows)
		}
	case record.Batch:
		s.batch(kinds)
	}
	return s
}

// stage adds a stage.
func (s *Schedule) stage(follows int) int {
	s.follows = append(s.follows, follows)
	return len(s.follows) - 1
}

// request adds a request to a stage. Turns count from 0.
func (s *Schedule) request(stage, conversation, client, kind, turn int, after time.Duration) {
	r := Request{Index: len(s.planned), Client: client, Conversation: conversation, Kind: kind}
	if s.traffic.Turns > 0 {
		r.Turn = turn + 1
	}
	if turn > 0 {
		after = 0
	}
	s.planned = append(s.planned, planned{r, stage, after})
}

// converse plans a conversation and returns its last stage.
func (s *Schedule) converse(conversation, client, kind int, after time.Duration, follows int) int {
	for turn := range max(1, s.traffic.Turns) {
		follows = s.stage(follows)
		s.request(follows, conversation, client, kind, turn, after)
	}
	return follows
}

// batch plans batches with one request per client; each turn of conversations is a batch.
func (s *Schedule) batch(kinds []int) {
	size, stage := s.traffic.Concurrency, free
	for first := 0; first < len(kinds); first += size {
		for turn := range max(1, s.traffic.Turns) {
			stage = s.stage(stage)
			for c := first; c < min(first+size, len(kinds)); c++ {
				s.request(stage, c, c-first+1, kinds[c], turn, delay(s.traffic, c-first))
			}
		}
	}
}

// Requests returns all requests, without times and slots.
func (s Schedule) Requests() []Request {
	all := make([]Request, 0, len(s.planned))
	for _, p := range s.planned {
		all = append(all, p.Request)
	}
	return all
}

// delay returns how much later than the first client a client starts.
func delay(t record.Traffic, client int) time.Duration {
	return seconds(float64(client) * t.StartDelay)
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// arrivals returns when the conversations of an open loop begin. In a ramp the rate grows evenly from 0, so that half
// as many begin as in the same time after it.
func arrivals(t record.Traffic, n int) []time.Duration {
	random := random(t.Seed, arriving)
	at := make([]time.Duration, n)
	come := 0.0 // expected number so far
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

// reached returns when n have come.
func reached(n, rate, ramp float64) float64 {
	if inRamp := rate * ramp / 2; n < inRamp {
		return math.Sqrt(2 * ramp * n / rate)
	}
	return n/rate + ramp/2
}

// Separate random numbers for each purpose, so that they do not affect each other.
const (
	arriving = iota + 1
	dealing
)

func random(seed, purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, purpose)) }

// deal gives each of n conversations a kind: as many of each as its share requires, rounded, shuffled by the seed.
// Every batch has a similar mix.
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
	for i := range dealt { // choose the kind that is furthest behind its share
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
