package traffic

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"
)

// Do sends a request and returns when it was answered. What it returns is all that was said by then, prompt and answer,
// which the next turn of the same conversation goes on from; where there are no turns, it may be empty. It must return
// soon when ctx ends.
type Do func(ctx context.Context, r Request) (said string, err error)

// ErrBefore is the error of a turn that was not sent because one before it failed: there is nothing to go on from.
var ErrBefore = errors.New("not sent: an earlier turn of its conversation failed")

// Outcome is what became of a request.
type Outcome struct {
	Request
	Sent  time.Time // when it was handed to do; zero: it never was
	Ended time.Time // when do returned
	Err   error
}

// Drive sends a schedule's requests, never more than so many at once, nor more than its concurrency allows. Of those
// that are due and wait, the one that was due first goes first. A request that fails stops none but its conversation's
// later turns. When ctx ends nothing more is sent, and Drive returns when those that go on have. Outcomes are in the
// schedule's order.
func Drive(ctx context.Context, s Schedule, slots int, do Do) Report {
	d := newDriver(s, max(1, slots), do)
	d.run(ctx)
	return Report{Outcomes: d.outcomes}
}

// driver is the one goroutine that decides; requests that go on are goroutines of their own, which tell it when they
// end.
type driver struct {
	schedule Schedule
	do       Do
	begin    time.Time
	outcomes []Outcome
	next     [][]int // the requests that follow each
	left     []int   // requests of each batch that have not ended
	members  [][]int // of each batch
	waiting  queue   // by when they are due
	places   []place
	ended    chan ended
	going    int
}

// place is where a request can run; since when it is free.
type place struct {
	since time.Time
	taken bool
}

type ended struct {
	index int
	sent  time.Time
	late  time.Duration
	at    time.Time
	said  string
	err   error
}

func newDriver(s Schedule, slots int, do Do) *driver {
	if most := s.traffic.Concurrency; most > 0 {
		slots = min(slots, most)
	}
	slots = min(slots, len(s.planned))
	d := &driver{schedule: s, do: do, outcomes: make([]Outcome, len(s.planned)), next: make([][]int, len(s.planned)),
		left: make([]int, s.batches), members: make([][]int, s.batches), places: make([]place, slots),
		ended: make(chan ended, slots)}
	for i, p := range s.planned {
		d.outcomes[i].Request = p.Request
		if p.follows != free {
			d.next[p.follows] = append(d.next[p.follows], i)
		}
		if s.batches > 0 {
			d.left[p.batch]++
			d.members[p.batch] = append(d.members[p.batch], i)
		}
	}
	return d
}

func (d *driver) run(ctx context.Context) {
	d.begin = time.Now()
	for i := range d.places {
		d.places[i].since = d.begin
	}
	for i, p := range d.schedule.planned {
		if p.follows == free && p.batch == 0 {
			d.due(i, d.begin.Add(p.after))
		}
	}
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	for ctx.Err() == nil && (d.going > 0 || d.waiting.Len() > 0) {
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
	d.unsent(ctx)
}

// due puts a request into the queue.
func (d *driver) due(i int, at time.Time) {
	d.outcomes[i].Due = at
	heap.Push(&d.waiting, waiting{at, i})
}

// send sends what is due and has a place, and says when to look again where nothing ends until then.
func (d *driver) send(ctx context.Context) time.Duration {
	for d.waiting.Len() > 0 && ctx.Err() == nil {
		first := d.waiting[0]
		if wait := time.Until(first.at); wait > 0 {
			return wait
		}
		slot := d.place()
		if slot < 0 {
			break // an end will free one
		}
		heap.Pop(&d.waiting)
		d.start(ctx, first.index, slot)
	}
	return time.Hour
}

// place finds the free place that has been free for the longest; -1: none.
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
	r, ready := d.outcomes[i].Request, later(d.outcomes[i].Due, d.places[slot].since)
	d.going++
	go func() {
		e := ended{index: i, err: errors.New("what sends requests ended in mid-request")} // where do ends its goroutine
		defer func() {
			if e.at.IsZero() {
				e.at = time.Now()
			}
			d.ended <- e // there is room
		}()
		e.sent = time.Now()
		e.late = max(0, e.sent.Sub(ready))
		r.Late = e.late
		e.said, e.err = d.do(ctx, r)
		e.at = time.Now()
	}()
}

// end frees a request's place and finds out what is due now.
func (d *driver) end(e ended) {
	o := &d.outcomes[e.index]
	p := &d.places[o.Slot]
	o.Sent, o.Late, o.Ended, o.Err = e.sent, e.late, e.at, e.err
	p.taken, p.since = false, e.at
	d.going--
	d.over(e.index, e.at, e.said)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// over lets follow what follows a request, whether it was answered, failed, or was never sent.
func (d *driver) over(i int, at time.Time, said string) {
	for _, n := range d.next[i] {
		d.follow(i, n, at, said)
	}
	if d.schedule.batches == 0 {
		return
	}
	batch := d.schedule.planned[i].batch
	// its next turn stands in the next batch, at its client's place
	if turn := d.outcomes[i].Turn; turn > 0 && turn < d.schedule.traffic.Turns {
		n := d.members[batch+1][d.outcomes[i].Client-1]
		d.outcomes[n].Before = said
		if d.outcomes[i].Err != nil {
			d.outcomes[n].Err = ErrBefore
		}
	}
	if d.left[batch]--; d.left[batch] > 0 || batch+1 == d.schedule.batches {
		return
	}
	for _, n := range d.members[batch+1] {
		if d.outcomes[n].Err != nil {
			d.outcomes[n].Due = at
			d.over(n, at, "")
			continue
		}
		after := time.Duration(0)
		if d.outcomes[n].Turn <= 1 {
			after = d.schedule.planned[n].after
		}
		d.due(n, at.Add(after))
	}
}

// follow has a request due when the one before it was over. A turn has nothing to go on from where that failed.
func (d *driver) follow(i, n int, at time.Time, said string) {
	o := &d.outcomes[n]
	if o.Conversation == d.outcomes[i].Conversation {
		o.Before = said
		if d.outcomes[i].Err != nil {
			o.Due, o.Err = at, ErrBefore
			d.over(n, at, "")
			return
		}
	}
	d.due(n, at)
}

// unsent gives the requests that were never sent their reason.
func (d *driver) unsent(ctx context.Context) {
	for i := range d.outcomes {
		if o := &d.outcomes[i]; o.Sent.IsZero() && o.Err == nil {
			o.Err = fmt.Errorf("not sent: %w", context.Cause(ctx))
		}
	}
}

// waiting is a request that is due at a time.
type waiting struct {
	at    time.Time
	index int
}

// queue is a heap of them, the earliest first; of two at one time the one that comes first in the schedule.
type queue []waiting

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].index < q[j].index
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(waiting)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
