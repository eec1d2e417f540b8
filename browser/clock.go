package browser

import (
	"context"
	"fmt"
	"math"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/record"
)

// pageClock converts times of the engine's thread to ours. The clock of a page or worker counts milliseconds since the
// Unix epoch from a wall-clock reading at its start, and then runs monotonically; ours is anchored in the same way.
type pageClock struct {
	anchor time.Time
	offset int64 // page's ns minus ours
}

// trips is how many round trips measureClock makes; the shortest counts.
const trips = 12

// measureClock compares the page's clock with ours. The page's reading is between our two, so half a round trip bounds
// the error.
func (p *Page) measureClock(ctx context.Context, when string) (record.Clock, error) {
	anchor := p.clock.anchor
	best := record.Clock{Isolate: string(p.thread), When: when, ErrorNS: math.MaxInt64}
	for range trips {
		begin := time.Now()
		page, err := Call[float64](ctx, p, "llmparity.now()")
		trip := time.Since(begin)
		if err != nil {
			return best, fmt.Errorf("reading the page's clock: %w", err)
		}
		if half := int64(trip / 2); half < best.ErrorNS {
			best.ErrorNS = half
			best.OffsetNS = int64(page*1e6) - anchor.UnixNano() - int64(begin.Add(trip/2).Sub(anchor))
		}
	}
	return best, nil
}

// drifted warns if the clocks have certainly drifted apart by more than the time between two samples, so that tokens
// and phases no longer match samples.
func (c pageClock) drifted(to engine.Teller, end record.Clock) {
	by := time.Duration(end.OffsetNS - c.offset).Abs()
	if by-time.Duration(end.ErrorNS) > proc.FastEvery {
		engine.Warn(to, "clock-drift", "the clock of the engine's thread (%s) and ours drifted apart by %v during the "+
			"launch: its times can be off by that much", end.Isolate, by.Round(time.Millisecond))
	}
}

// At returns the time at which the clock of the engine's thread showed ms.
func (p *Page) At(ms float64) time.Time {
	c := p.clock
	return c.anchor.Add(time.Duration(int64(ms*1e6) - c.offset - c.anchor.UnixNano()))
}
