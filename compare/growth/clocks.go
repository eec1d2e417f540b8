package growth

import (
	"fmt"
	"time"

	"llmparity/compare/evidence"
	"llmparity/internal/record"
)

// clocks is what a launch's record says of the clock that its tokens were timed by: that of a page or a worker. Offsets
// and errors are in nanoseconds. Engines that are timed by our own clock have none.
type clocks struct {
	isolate string
	known   bool  // it was compared with ours at all
	checked bool  // and once more at the end
	start   int64 // error of the first comparison
	drift   int64 // by how much the two moved apart, whichever way
}

// clocksOf goes by the launch's first comparison and the last one up to the attempt's end, or the next behind it: where
// repetitions share a launch the end is compared in the last of them. Of several isolates it is the one that is worst
// known.
func clocksOf(l evidence.Launch) clocks {
	first, last := map[string]*record.Clock{}, map[string]*record.Clock{}
	attempts := l.Attempts
	if len(attempts) == 0 || attempts[0] != l.Opener {
		attempts = append([]*record.Attempt{l.Opener}, attempts...)
	}
	for _, a := range attempts {
		for _, e := range a.Events {
			if c := e.Clock; c != nil {
				if first[c.Isolate] == nil {
					first[c.Isolate] = c
				} else {
					last[c.Isolate] = c
				}
			}
		}
	}
	var worst clocks
	for isolate, begin := range first {
		c := clocks{isolate: isolate, known: true, start: begin.ErrorNS}
		if end := last[isolate]; end != nil {
			c.checked, c.drift = true, max(end.OffsetNS-begin.OffsetNS, begin.OffsetNS-end.OffsetNS)
		}
		if !worst.known || c.bound() > worst.bound() || c.bound() == worst.bound() && c.isolate < worst.isolate {
			worst = c
		}
	}
	return worst
}

// bound is how far off a token's time may be.
func (c clocks) bound() int64 { return c.drift + c.start }

// trouble says why tokens can't be put beside samples of this interval; empty where they can.
func (c clocks) trouble(every int64) string {
	if every <= 0 || c.bound() <= every {
		return ""
	}
	return fmt.Sprintf("the clock of its tokens (%s) is known to %v at worst, more than the %v between two samples",
		c.isolate, span(c.bound()), span(every))
}

func span(ns int64) time.Duration { return time.Duration(ns).Round(10 * time.Microsecond) }
