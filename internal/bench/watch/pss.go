package watch

import (
	"context"
	"errors"
	"time"

	"llmparity/internal/host/sample"
	"llmparity/internal/record"
)

// carry completes a sample with the PSS that is carried forward.
func (w *watcher) carry(now time.Time, p *Point) {
	t := record.Total{Sample: record.NewSample(), Processes: p.Processes}
	t.RSS, t.End = p.RSS, now
	w.passes.EndSizes(&t)
	if t.PSS != record.Absent {
		w.pss = t.PSS
		w.sum.peak(t.PSS, t.Carried.Low, t.Carried.High)
	} else if w.o.PSS > 0 {
		w.sum.MostPSS = max(w.sum.MostPSS, p.RSS) // PSS of a process was not read yet
	}
	p.PSS = w.pss
}

// readPSS reads PSS and USS of every process. All of them count for the peak.
func (w *watcher) readPSS() {
	t := record.Total{Sample: record.NewSample()}
	t.Begin = time.Now()
	w.passes.Begin()
	for _, who := range w.alive {
		if who.expensive == nil || who.double {
			continue
		}
		r, err := w.readOne(who)
		switch {
		case err == nil:
			who.read = r
			t.PSS, t.USS, t.Processes = max(t.PSS, 0)+r.PSS, max(t.USS, 0)+r.USS, t.Processes+1
		case !errors.Is(err, sample.ErrGone):
			who.expensive = nil
			who.drop()
			w.unreadable(who, "PSS and USS", err)
		}
	}
	if t.Processes > 0 {
		t.End = time.Now()
		if hidden, was := w.passes.EndPSS(&t); was {
			w.sum.peak(hidden.PSS, hidden.Carried.Low, hidden.Carried.High)
		}
		w.sum.peak(t.PSS, t.PSS, t.PSS)
		w.sum.ReadPSS++
	}
	w.pace.done(t.Begin)
}

// readOne reads PSS and USS of a process, and its size before and after, from which they are carried forward.
func (w *watcher) readOne(who *process) (*record.Sample, error) {
	size := func() *record.Sample {
		s := record.NewSample()
		if who.cheap == nil || who.cheap.Read(context.Background(), &s) != nil || s.Shared == record.Absent {
			return nil
		}
		return &s
	}
	before, r := size(), record.NewSample()
	if err := who.expensive.Read(context.Background(), &r); err != nil {
		return nil, err
	}
	if behind := size(); before != nil && behind != nil {
		w.carried(who).PSS(&r, before, behind)
	}
	return &r, nil
}

// carried returns what carries the PSS of a process forward; nil if it can't be read.
func (w *watcher) carried(who *process) *sample.Read {
	if who.carried == nil && who.expensive != nil {
		who.carried = w.passes.Add(who.PID, who.Start)
	}
	return who.carried
}

// drop ends carrying PSS forward.
func (p *process) drop() {
	if p.carried != nil {
		p.carried.Drop()
		p.carried = nil
	}
}

// pace says when to read PSS: soon after a process started or ended, or memory grew; then more and more rarely, down to
// once in an interval. Reading takes at most one part in pssShare of the time.
type pace struct {
	every, soon time.Duration
	gap, cost   time.Duration // until the next reading; of the last one
	due         time.Time
	high, rss   int64 // highest RSS at any reading; current RSS
}

const (
	pssShare = 100
	byMuch   = 1.02 // growth that triggers a reading: there may be a new peak of PSS
)

func (p *pace) isDue(now time.Time) bool { return p.every > 0 && !p.due.IsZero() && !now.Before(p.due) }

// changed says that a process started or ended.
func (p *pace) changed(now time.Time) {
	p.gap = p.soon
	if due := now.Add(max(p.gap, p.cost*pssShare)); p.due.IsZero() || due.Before(p.due) {
		p.due = due
	}
}

// grown takes the current RSS.
func (p *pace) grown(now time.Time, rss int64) {
	if p.rss = rss; float64(rss) > byMuch*float64(p.high) {
		p.changed(now)
	}
}

// done says that PSS was read.
func (p *pace) done(begin time.Time) {
	now := time.Now()
	p.cost, p.high = now.Sub(begin), max(p.high, p.rss)
	p.due = now.Add(max(p.gap, p.cost*pssShare))
	p.gap = min(2*p.gap, p.every)
}
