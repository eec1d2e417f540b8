package browser

import (
	"context"
	"errors"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// pulse is how often the engine's thread is asked for a sign of life, which costs it about 10 µs.
const pulse = 2 * time.Second

// Guard watches the engine's thread until stop is called. If its event loop is blocked for the watchdog's time, the
// session is lost, and every call fails. A launch's timeout limits slow work; this detects that nothing happens.
func (p *Page) Guard() (stop func()) {
	return repeat(p.tab.Context(), min(pulse, p.watchdog/2), func(ctx context.Context) bool {
		if p.answers(ctx) {
			return false
		}
		p.tab.Lose(engine.Fail(record.Hung, "the %s hangs: its event loop was blocked for %v (%s)",
			p.thread, p.watchdog, p.browserSays(ctx)))
		return true
	})
}

// repeat calls do at intervals until it returns true or stop is called. stop waits for do to return.
func repeat(ctx context.Context, every time.Duration, do func(context.Context) (over bool)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for over := false; !over; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				over = do(ctx)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// asked is how often a thread is asked before it counts as hanging, because a question or its answer may get lost.
const asked = 3

// answers waits for the thread's event loop to turn. If that cannot be told, or the session has ended, it returns true.
func (p *Page) answers(ctx context.Context) bool {
	for range asked {
		limit, cancel := context.WithTimeout(ctx, p.watchdog/asked)
		err := p.tab.Turns(limit)
		hangs := err != nil && ctx.Err() == nil && errors.Is(limit.Err(), context.DeadlineExceeded)
		cancel()
		if !hangs {
			return true
		}
	}
	return false
}

// browserSays distinguishes a hanging page from a hanging browser.
func (p *Page) browserSays(ctx context.Context) string {
	limit, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := p.tab.Answers(limit); err != nil {
		return "the browser does not answer either"
	}
	return "the browser answers"
}
