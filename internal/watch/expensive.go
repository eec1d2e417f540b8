package watch

import (
	"context"
	"sync"
	"time"

	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// expensive reads the expensive sources in one pass, in its own goroutine, while sampling continues.
//
// A pass follows soon after a process started or ended, or memory grew. Then passes become rarer, down to one for each
// interval. Together they take at most one part in expensiveShare of a core.
type expensive struct {
	every, soon time.Duration

	out  chan []reading
	wg   sync.WaitGroup
	busy bool
	gap  time.Duration
	due  time.Time
	cost time.Duration // of the last pass
	high int64         // highest RSS at any pass
	rss  int64         // current RSS

	ctx    context.Context
	cancel context.CancelFunc
}

const expensiveShare = 100

// reading is a reading of an expensive source.
type reading struct {
	record.Sample
	who *process
	err error
}

func newExpensive(every, soon time.Duration) *expensive {
	ctx, cancel := context.WithCancel(context.Background())
	return &expensive{every: every, soon: min(soon, every), gap: every, out: make(chan []reading, 1), ctx: ctx,
		cancel: cancel}
}

// changed says that a process started or ended.
func (d *expensive) changed(now time.Time) {
	d.gap = d.soon
	if due := now.Add(max(d.gap, d.cost*expensiveShare)); d.due.IsZero() || due.Before(d.due) {
		d.due = due
	}
}

// byMuch is the growth that triggers a pass.
const byMuch = 1.02

// grown takes the current RSS. Above the RSS of earlier passes there may be a new peak of PSS.
func (d *expensive) grown(now time.Time, rss int64) {
	if d.rss = rss; float64(rss) > byMuch*float64(d.high) {
		d.changed(now)
	}
}

// read starts a pass if one is due.
func (d *expensive) read(now time.Time, all []*process) {
	if d.every <= 0 || d.busy || d.due.IsZero() || now.Before(d.due) {
		return
	}
	var who []*process
	var sources []sample.Source
	for _, p := range all {
		if p.expensive != nil && !p.double {
			who, sources = append(who, p), append(sources, p.expensive)
		}
	}
	if len(who) == 0 {
		return
	}
	d.busy = true
	d.high = max(d.high, d.rss)
	d.wg.Go(func() {
		pass := make([]reading, 0, len(who))
		for i, p := range who {
			if d.ctx.Err() != nil {
				break // keep what was read
			}
			r := reading{Sample: record.NewSample(), who: p}
			r.err = sources[i].Read(d.ctx, &r.Sample)
			pass = append(pass, r)
		}
		d.out <- pass
	})
}

// results returns the readings of a pass that has ended since the last call.
func (d *expensive) results() []reading {
	select {
	case pass := <-d.out:
		d.busy = false
		d.cost = 0
		for _, r := range pass {
			if r.err == nil {
				d.cost += r.End.Sub(r.Begin)
			}
		}
		d.due = time.Now().Add(max(d.gap, d.cost*expensiveShare))
		d.gap = min(2*d.gap, d.every)
		return pass
	default:
		return nil
	}
}

// stop ends a pass in progress.
func (d *expensive) stop() {
	d.cancel()
	d.wg.Wait()
}
