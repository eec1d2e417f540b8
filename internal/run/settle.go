package run

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/record"
)

// The baseline is taken when total RSS has moved by no more than a tolerance within a window, or, with a warning, when
// the time limit is reached.
const (
	settleWindow   = 500 * time.Millisecond
	settlePatience = 5 * time.Second
	settleReadings = 4 // minimum within the window
	settleLook     = 25 * time.Millisecond
	settlePercent  = 1              // tolerance, in percent of total RSS
	settleBytes    = 2 * record.MiB // minimum of the tolerance
)

// totals is a relay that also evaluates totals.
type totals struct {
	*relay
	memory *atomic.Int64 // last total RSS

	mu   sync.Mutex
	read map[string][]record.Total // by method, while the baseline settles; else nil
}

func (s *totals) Total(t record.Total) {
	s.relay.Total(t)
	if t.RSS != record.Absent {
		s.memory.Store(t.RSS)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read != nil && t.RSS != record.Absent {
		s.read[t.Method] = append(s.read[t.Method], t)
	}
}

// Warn is the sampler's. It warns once for each session, so the warning holds for later attempts too.
func (s *totals) Warn(w record.Warning) { s.stand(w) }

func (s *totals) look(at bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = nil
	if at {
		s.read = map[string][]record.Total{}
	}
}

// spread returns the range of RSS since a time; false if too little was read or processes came or went.
func (s *totals) spread(since time.Time) (spread, highest int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for method, read := range s.read {
		for len(read) > 0 && read[0].Begin.Before(since) {
			read = read[1:]
		}
		s.read[method] = read
		if len(read) < settleReadings {
			continue
		}
		lowest := read[0].RSS
		for _, t := range read {
			lowest, highest = min(lowest, t.RSS), max(highest, t.RSS)
			if t.Processes != read[0].Processes {
				return 0, 0, false
			}
		}
		return highest - lowest, highest, true
	}
	return 0, 0, false
}

// any reports whether anything was read: a browser on another machine is not.
func (s *totals) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, read := range s.read {
		if len(read) > 0 {
			return true
		}
	}
	return false
}

// settle waits until the engine's memory is steady, and records how long that took.
func (a *attempt) settle(ctx context.Context) error {
	totals := a.live.totals
	totals.look(true)
	defer totals.look(false)
	begin := time.Now()
	s := record.Settling{Window: settleWindow, Spread: record.Absent}
	for wait := settleWindow; ; wait = settleLook {
		if err := pause(ctx, wait); err != nil {
			return err
		}
		now := time.Now()
		s.Waited = now.Sub(begin)
		spread, highest, ok := totals.spread(now.Add(-settleWindow))
		if ok {
			s.Spread, s.Tolerance = spread, max(settleBytes, highest*settlePercent/100)
			s.Settled = spread <= s.Tolerance
		}
		if s.Settled || s.Waited >= settlePatience || !ok && s.Waited >= 2*settleWindow && !totals.any() {
			break
		}
	}
	a.rec.Event(record.Event{At: time.Now(), Settling: &s})
	if !s.Settled && s.Spread != record.Absent {
		totals.stand(record.Warnf("baseline-not-settled", "baseline not steady after %v: RSS still moved by %.1f MiB "+
			"in %v; increases may be off by as much", s.Waited.Round(time.Millisecond), float64(s.Spread)/record.MiB,
			settleWindow))
	}
	return nil
}
