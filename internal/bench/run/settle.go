package run

import (
	"context"
	"time"

	"llmparity/internal/bench/run/steady"
	"llmparity/internal/record"
)

// The baseline is taken when total RSS has moved by no more than a tolerance within a window, or, with a warning, when
// the time limit is reached.
const (
	settleWindow   = 500 * time.Millisecond
	settlePatience = 5 * time.Second
	settleLook     = 25 * time.Millisecond
	settlePercent  = 1              // tolerance, in percent of total RSS
	settleBytes    = 2 * record.MiB // minimum of the tolerance
)

// settle waits until the engine's memory is steady, and records how long that took.
func (a *attempt) settle(ctx context.Context) error {
	relay := a.live.relay
	relay.look(steady.Totals{})
	defer relay.look(nil)
	begin := time.Now()
	s := record.Settling{Window: settleWindow, Spread: record.Absent}
	for wait := settleWindow; ; wait = settleLook {
		if err := pause(ctx, wait); err != nil {
			return err
		}
		now := time.Now()
		s.Waited = now.Sub(begin)
		r := relay.moved(now.Add(-settleWindow))
		if r.Known {
			s.Spread, s.Tolerance = r.Highest-r.Lowest, max(settleBytes, r.Highest*settlePercent/100)
			s.Settled = s.Spread <= s.Tolerance
		}
		if s.Settled || s.Waited >= settlePatience || !r.Known && s.Waited >= 2*settleWindow && !r.Read {
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
func (r *relay) look(read steady.Totals) {
	defer r.lock()()
	r.read = read
}

// moved is the range of RSS since a time.
func (r *relay) moved(begin time.Time) steady.Range {
	defer r.lock()()
	return r.read.Since(begin)
}
