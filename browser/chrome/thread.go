package chrome

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"llmparity/browser/driver"
	"llmparity/internal/engine"
)

// isolate is the engine's thread: the page's or that of its worker. Calls to either look the same.
type isolate struct {
	ctx    context.Context // of its target; ends with the page's
	worker target.ID       // empty: the page
}

// Enter finds the engine's thread and gives it the binding for reports. A worker reports directly, not through the
// page.
func (t *Tab) Enter(ctx context.Context, thread driver.Thread) error {
	add := command(runtime.AddBinding, runtime.AddBindingParams{Name: driver.Binding})
	if thread != driver.WorkerThread {
		tctx, cancel := t.within(ctx)
		defer cancel()
		return t.errorOf(ctx, chromedp.Do(tctx, add))
	}
	workers, err := t.Workers(ctx)
	if err != nil {
		return err
	}
	if len(workers) != 1 {
		return fmt.Errorf("the page has %d workers instead of 1", len(workers))
	}
	worker := target.ID(workers[0])
	wctx, end := chromedp.NewContext(t.Ctx, chromedp.WithTargetID(worker), chromedp.WithDetachOnCancel(),
		chromedp.WithListener(func(ev any) { t.hear(*t.told.Load(), ev) }))
	t.isolate = isolate{wctx, worker}
	defer context.AfterFunc(ctx, end)()
	if err := chromedp.Do(wctx, command(network.Disable, cdp.Empty{}), add); err != nil {
		return fmt.Errorf("entering the page's worker: %w", t.errorOf(ctx, err))
	}
	return nil
}

// Evaluate evaluates an expression in a thread and waits for its promise.
func (t *Tab) Evaluate(ctx context.Context, in driver.Thread, expression string) (json.RawMessage, error) {
	thread := t.Ctx
	if in == driver.WorkerThread {
		thread = t.isolate.ctx
	}
	both, cancel := engine.Within(thread, ctx)
	defer cancel()
	v, err := chromedp.Run(both, chromedp.Evaluate[json.RawMessage](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		return nil, t.errorOf(ctx, err)
	}
	return v, nil
}

// Adapter adds nothing to what the page knows.
func (t *Tab) Adapter(context.Context) (*driver.Adapted, error) { return nil, nil }

// Turns waits for the event loop of the engine's thread to turn.
func (t *Tab) Turns(ctx context.Context) error {
	both, cancel := engine.Within(t.isolate.ctx, ctx)
	defer cancel()
	_, err := chromedp.Run(both, chromedp.Evaluate[chromedp.Void]("0"))
	return err
}

// Answers waits for the browser's answer.
func (t *Tab) Answers(ctx context.Context) error {
	both, cancel := t.within(ctx)
	defer cancel()
	_, err := chromedp.CallBrowser(both, browser.GetVersion, cdp.Empty{})
	return err
}

// Collect collects garbage in the engine's thread and the page's, so that the next readings only include what is held.
// After an unload a library's WebAssembly memory is garbage of tens of MiB.
func (t *Tab) Collect(ctx context.Context) error {
	for _, target := range []context.Context{t.isolate.ctx, t.Ctx} {
		tctx, cancel := engine.Within(target, ctx)
		_, err := chromedp.Call(tctx, heapprofiler.CollectGarbage, cdp.Empty{})
		cancel()
		if err != nil {
			return fmt.Errorf("collecting the page's garbage: %w", t.errorOf(ctx, err))
		}
		if t.isolate.worker == "" {
			break // the same thread
		}
	}
	return nil
}

// ask sends the browser a command about the page; doing is for error messages.
func ask[P, R any](ctx context.Context, t *Tab, doing string, c cdp.Command[P, R], params P) (R, error) {
	both, cancel := t.within(ctx)
	defer cancel()
	r, err := chromedp.Call(both, c, params)
	if err != nil {
		return r, fmt.Errorf("%s: %w", doing, t.errorOf(ctx, err))
	}
	return r, nil
}

// within returns a context for calls to the page. It ends with ctx, and when the page is lost, because a crashed page
// never answers.
func (t *Tab) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return engine.Within(t.Ctx, ctx)
}

func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		var none chromedp.Void
		_, err := cdp.Call(ctx, t, c, params)
		return none, err
	}
}
