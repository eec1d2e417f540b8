package traffic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"llmparity/internal/record"
)

// Do sends a request and returns when it is answered. said is the conversation up to then, prompt and answer, from
// which the next turn continues; without turns it may be empty. Do must return soon after ctx ends.
type Do func(ctx context.Context, r Request) (said string, err error)

// ErrBefore is the error of turns that were not sent because an earlier one failed.
var ErrBefore = errors.New("not sent: an earlier turn of its conversation failed")

// Outcome is the result of a request.
type Outcome struct {
	Request
	Sent  time.Time // when passed to Do; zero: never
	Ended time.Time // when Do returned
	Err   error
}

// Drive sends a schedule's requests, up to slots or the schedule's concurrency at once, the earliest due first. A
// failed request only stops the later turns of its conversation. When ctx ends, Drive sends nothing more and waits for
// running requests. Outcomes are in the schedule's order.
func Drive(ctx context.Context, s Schedule, slots int, do Do) Report {
	d, begin := newDriver(s, max(1, slots), do), time.Now()
	for i, follows := range s.follows {
		if follows == free {
			d.open(i, begin)
		}
	}
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	for ctx.Err() == nil && (d.going > 0 || len(d.waiting) > 0) {
		alarm.Reset(d.send(ctx))
		select {
		case <-ctx.Done():
		case <-alarm.C:
		case e := <-d.ended:
			d.end(e)
		}
	}
	for d.going > 0 {
		d.end(<-d.ended)
	}
	for i := range d.outcomes {
		if o := &d.outcomes[i]; o.Sent.IsZero() && o.Err == nil {
			o.Err = fmt.Errorf("not sent: %w", context.Cause(ctx))
		}
	}
	return Report{Outcomes: d.outcomes}
}

// driver decides in one goroutine; each running request has its own goroutine and reports its end.
type driver struct {
	schedule Schedule
	do       Do
	outcomes []Outcome
	stages   []running
	turn     []int // the next turn of each request's conversation; free: none
	waiting  []waiting
	places   []place
	ended    chan ended
	going    int
}

// running is the state of a stage.
type running struct {
	members []int // requests
	left    int   // of them that have not ended
	next    []int // stages
}

// place is where a request can run.
type place struct {
	since time.Time // when it became free; zero: it always was
	taken bool
}

type ended struct {
	Outcome
	index int // of the outcome
	said  string
}

func newDriver(s Schedule, slots int, do Do) *driver {
	if most := s.traffic.Concurrency; most > 0 {
		slots = min(slots, most)
	}
	slots = min(slots, len(s.planned))
	d := &driver{schedule: s, do: do, outcomes: make([]Outcome, len(s.planned)), turn: make([]int, len(s.planned)),
		stages: make([]running, len(s.follows)), places: make([]place, slots), ended: make(chan ended, slots)}
	before := map[int]int{} // the last turn of each conversation
	for i, p := range s.planned {
		d.outcomes[i].Request, d.turn[i] = p.Request, free
		if p.Turn > 1 {
			d.turn[before[p.Conversation]] = i
		}
		before[p.Conversation] = i
		of := &d.stages[p.stage]
		of.members, of.left = append(of.members, i), of.left+1
	}
	for i, follows := range s.follows {
		if follows != free {
			d.stages[follows].next = append(d.stages[follows].next, i)
		}
	}
	return d
}

// send sends due requests while places are free, and returns when to look again if none ends.
func (d *driver) send(ctx context.Context) time.Duration {
	for len(d.waiting) > 0 && ctx.Err() == nil {
		first := d.waiting[0]
		if wait := time.Until(first.at); wait > 0 {
			return wait
		}
		slot := d.place()
		if slot < 0 {
			break // wait for an end
		}
		d.waiting = d.waiting[1:]
		d.start(ctx, first.index, slot)
	}
	return time.Hour
}

// place returns the place that has been free longest; -1: none.
func (d *driver) place() int {
	best := -1
	for i, p := range d.places {
		if !p.taken && (best < 0 || p.since.Before(d.places[best].since)) {
			best = i
		}
	}
	return best
}

func (d *driver) start(ctx context.Context, i, slot int) {
	d.places[slot].taken = true
	d.outcomes[i].Slot = slot
	e, ready := ended{Outcome: d.outcomes[i], index: i}, d.outcomes[i].Due
	if since := d.places[slot].since; since.After(ready) {
		ready = since
	}
	d.going++
	go func() {
		e.Sent = time.Now()
		e.Late = max(0, e.Sent.Sub(ready))
		e.said, e.Err = d.do(ctx, e.Request)
		e.Ended = time.Now()
		d.ended <- e // there is room
	}()
}

// end frees a request's place and queues what is due now.
func (d *driver) end(e ended) {
	d.outcomes[e.index], d.places[e.Slot] = e.Outcome, place{since: e.Ended}
	d.going--
	d.over(e.index, e.Ended, e.said)
}

// over handles what follows a request that was answered, failed, or was never sent. The next turn of a failed one fails
// too.
func (d *driver) over(i int, at time.Time, said string) {
	if n := d.turn[i]; n != free {
		d.outcomes[n].Before = said
		if d.outcomes[i].Err != nil {
			d.outcomes[n].Err = ErrBefore
		}
	}
	stage := &d.stages[d.schedule.planned[i].stage]
	if stage.left--; stage.left > 0 {
		return
	}
	for _, next := range stage.next {
		d.open(next, at)
	}
}

// open queues the requests of a stage.
func (d *driver) open(stage int, at time.Time) {
	for _, n := range d.stages[stage].members {
		if d.outcomes[n].Err != nil {
			d.outcomes[n].Due = at
			d.over(n, at, "")
			continue
		}
		w := waiting{at.Add(d.schedule.planned[n].after), n}
		d.outcomes[n].Due = w.at
		place, _ := slices.BinarySearchFunc(d.waiting, w, waiting.compare)
		d.waiting = slices.Insert(d.waiting, place, w)
	}
}

// waiting is a queued request.
type waiting struct {
	at    time.Time
	index int
}

// compare orders by due time, then as in the schedule.
func (w waiting) compare(o waiting) int {
	return cmp.Or(w.at.Compare(o.at), cmp.Compare(w.index, o.index))
}

// Report has the results of a schedule.
type Report struct{ Outcomes []Outcome }

// Err returns how many requests failed and the first failure, or nil.
func (r Report) Err() error {
	failed, first := 0, error(nil)
	for _, o := range r.Outcomes {
		if o.Err == nil {
			continue
		}
		failed++
		// prefer failures of requests that were sent
		if first == nil || o.Err != nil && unsent(first) && !unsent(o.Err) {
			first = o.Err
		}
	}
	if first == nil || len(r.Outcomes) == 1 {
		return first
	}
	return fmt.Errorf("%d of %d requests failed; the first: %w", failed, len(r.Outcomes), first)
}

func unsent(err error) bool { return errors.Is(err, ErrBefore) || errors.Is(err, context.Canceled) }

// Lateness is how late requests were sent although they were due and a place was free.
type Lateness struct{ P50, P99, Max time.Duration }

// Lateness covers all requests that were sent.
func (r Report) Lateness() Lateness {
	var all []time.Duration
	for _, o := range r.Outcomes {
		if !o.Sent.IsZero() {
			all = append(all, o.Late)
		}
	}
	if len(all) == 0 {
		return Lateness{}
	}
	slices.Sort(all)
	rank := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] } // nearest rank
	return Lateness{rank(50), rank(99), all[len(all)-1]}
}

// tooLate is not small compared to a fast engine's time to first token.
const tooLate = 10 * time.Millisecond

// Warnings warns about a load that was not sent as scheduled.
func (r Report) Warnings() []record.Warning {
	l := r.Lateness()
	if l.P99 < tooLate {
		return nil
	}
	return []record.Warning{{Code: "load-late",
		Text: fmt.Sprintf("1%% of the requests were sent %s or more after they were due and had a place (median %s, most %s): "+
			"the machine is too busy to send them in time. Waiting times count from when a request was due",
			l.P99.Round(time.Millisecond), l.P50.Round(time.Microsecond), l.Max.Round(time.Millisecond))}}
}
