package run

import (
	"context"
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

// settle waits until the engine's memory is steady, and records how long that took.
func (a *attempt) settle(ctx context.Context) error {
	relay := a.live.relay
	relay.look(map[string][]record.Total{})
	defer relay.look(nil)
	begin := time.Now()
	s := record.Settling{Window: settleWindow, Spread: record.Absent}
	for wait := settleWindow; ; wait = settleLook {
		if err := pause(ctx, wait); err != nil {
			return err
		}
		now := time.Now()
		s.Waited = now.Sub(begin)
		spread, highest, ok, any := relay.spread(now.Add(-settleWindow))
		if ok {
			s.Spread, s.Tolerance = spread, max(settleBytes, highest*settlePercent/100)
			s.Settled = spread <= s.Tolerance
		}
		if s.Settled || s.Waited >= settlePatience || !ok && s.Waited >= 2*settleWindow && !any {
			break
		}
	}
	a.rec.Event(record.Event{At: time.Now(), Settling: &s})
	if !s.Settled && s.Spread != record.Absent {
		sink{relay}.Warn(record.Warnf("baseline-not-settled", "baseline not steady after %v: RSS still moved by %.1f MiB "+
			"in %v; increases may be off by as much", s.Waited.Round(time.Millisecond), float64(s.Spread)/record.MiB,
			settleWindow))
	}
	return nil
}

// look keeps totals from here on; nil ends that.
func (r *relay) look(read map[string][]record.Total) {
	defer r.lock()()
	r.read = read
}

// spread returns the range of RSS since a time; not ok if too little was read or processes came or went. any is whether
// anything was read: a browser on another machine is not.
func (r *relay) spread(since time.Time) (spread, highest int64, ok, any bool) {
	defer r.lock()()
	for method, read := range r.read {
		for len(read) > 0 && read[0].Begin.Before(since) {
			read = read[1:]
		}
		r.read[method] = read
		any = any || len(read) > 0
		if ok || len(read) < settleReadings {
			continue
		}
		lowest := read[0].RSS
		for _, t := range read {
			lowest, highest = min(lowest, t.RSS), max(highest, t.RSS)
			if t.Processes != read[0].Processes {
				return 0, 0, false, true
			}
		}
		spread, ok = highest-lowest, true
	}
	return spread, highest, ok, any
}
