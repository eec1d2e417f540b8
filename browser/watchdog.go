package browser

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"llmparity/internal/engine"
	"llmparity/internal/record"
)

// pulse is how often a thread that we wait for is asked for a sign of life. An answer costs it some ten microseconds.
const pulse = 2 * time.Second

// Guard watches over the engine's thread until the function returned is called: where its event loop does not turn for
// the watchdog's time, the session is lost, and every call with it. A launch's time-out says that something takes long;
// this says that nothing goes on.
func (p *Page) Guard() (stop func()) {
	return repeat(p.isolate.ctx, min(pulse, p.watchdog/2), func(ctx context.Context) bool {
		if p.answers(ctx) {
			return false
		}
		p.chrome.lose(engine.Fail(record.Hung, "the %s hangs: its event loop gave no sign of life for %v (%s)",
			p.isolate.thread, p.watchdog, p.browserSays(ctx)))
		return true
	})
}

// repeat does something at intervals, until it says that it is over or the function returned is called, which waits for
// it.
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

// asked is how often a thread is asked before it is said to hang: a question or its answer may get lost between us and
// it.
const asked = 3

// answers waits for a sign of life. One that can't come because the session has ended is none of the watchdog's
// business.
func (p *Page) answers(ctx context.Context) bool {
	for range asked {
		if alive(ctx, p.watchdog/asked) {
			return true
		}
	}
	return false
}

// alive waits so long for a thread's event loop to turn; it may if that can't be told.
func alive(ctx context.Context, atMost time.Duration) bool {
	limit, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	_, err := chromedp.Run(limit, chromedp.Evaluate[chromedp.Void]("0"))
	return err == nil || ctx.Err() != nil || !errors.Is(limit.Err(), context.DeadlineExceeded)
}

// browserSays tells a hanging page from a hanging browser, and a hanging worker from one that is gone or whose page
// hangs too.
func (p *Page) browserSays(ctx context.Context) string {
	limit, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if _, err := chromedp.CallBrowser(limit, browser.GetVersion, cdp.Empty{}); err != nil {
		return "the browser does not answer either"
	}
	if p.isolate.worker == "" {
		return "the browser answers"
	}
	if !alive(p.chrome.ctx, grace) {
		return "the browser answers, its page does not"
	}
	if there, err := p.workers(ctx); err == nil && !slices.Contains(there, p.isolate.worker) {
		return "the browser and its page answer, and the worker has ended"
	}
	return "the browser and its page answer"
}
