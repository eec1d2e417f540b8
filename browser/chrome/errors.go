package chrome

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Open opens our page.
func (t *Tab) Open(ctx context.Context, base, url string) error {
	t.base = base
	nctx, cancel := t.within(ctx)
	defer cancel()
	err := chromedp.Do(nctx,
		// End chromedp's subscriptions for clicking and reading. Above all, with the network domain enabled the browser
		// keeps response bodies, and so a second copy of the weights.
		command(network.Disable, cdp.Empty{}), command(css.Disable, cdp.Empty{}), command(dom.Disable, cdp.Empty{}),
		chromedp.Navigate(url),
	)
	if err == nil {
		return nil
	}
	// The browser stops loading a page when the renderer ends meanwhile.
	load, _ := errors.AsType[*chromedp.LoadError](err)
	if err = t.errorOf(ctx, err); load != nil && load.ErrorText == "net::ERR_ABORTED" {
		return &driver.Aborted{Err: err}
	}
	return err
}

// errorOf returns the meaning of a failed call.
func (t *Tab) errorOf(ctx context.Context, err error) error {
	return t.OnFullDisk(t.meaningOf(ctx, err))
}

func (t *Tab) meaningOf(ctx context.Context, err error) error {
	said, _ := errors.AsType[*cdproto.Error](err)
	gone := ""
	switch {
	case errors.Is(err, context.Canceled): // only the end of the browser cancels a call whose caller is still waiting
		gone = "the browser ended unexpectedly"
	case said != nil && strings.Contains(said.Message, "Target crashed"):
		gone = "the page's renderer process ended"
	}
	if errors.Is(err, chromedp.ErrTargetDetached) {
		t.ended()
	}
	meaning := t.Meaning(ctx, err, gone)
	if e, ok := errors.AsType[*chromedp.ExceptionError](meaning); ok {
		return thrown(e)
	}
	return meaning
}

// thrown returns the message of what the page threw, on one line and without the stack.
func thrown(e *chromedp.ExceptionError) *driver.Thrown {
	text := e.Text
	if o := e.Exception; o != nil && o.Description != "" {
		text = o.Description
	} else if o != nil && len(o.Value) > 0 {
		text = strings.Trim(string(o.Value), `"`) // a bare string was thrown
	}
	text, _, _ = strings.Cut(text, "\n    at ")
	return &driver.Thrown{Text: fault.OneLine(text)}
}

// wordsCome is how long the event that knows the reason of a crash may take after the other.
const wordsCome = 500 * time.Millisecond

// crash reports that the renderer ended, without blocking the browser's events, after waiting for output that may
// say why. The browser sends two events; the one that does not know the reason waits so that the other comes first.
func (t *Tab) crash(status string, patience time.Duration) {
	go func() {
		select {
		case <-t.Ctx.Done():
			return
		case <-time.After(patience):
		}
		class, how := t.EndedFor(status)
		t.Lose(engine.Fail(class, "the page's renderer process ended (%s)", how))
	}()
}

// ended is called if a call's target has gone, which we do not cause ourselves.
func (t *Tab) ended() {
	if t.Ctx.Err() != nil {
		return
	}
	if t.isolate.worker == "" {
		t.Lose(engine.Fail(record.Crash, "the page was closed"))
		return
	}
	class, how := t.EndedFor("it is gone")
	t.Lose(engine.Fail(class, "the page's worker ended unexpectedly (%s)", how))
}
