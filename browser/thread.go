package browser

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"llmparity/internal/engine"
)

// Thread says where in the page the engine runs.
type Thread string

// Possible threads.
const (
	PageThread   Thread = "page"   // the page's main thread
	WorkerThread Thread = "worker" // a dedicated worker
)

// isolate is the engine's thread: the page's or that of its worker. Calls to either look the same.
type isolate struct {
	thread Thread
	ctx    context.Context // of its target; ends with the page's
	worker target.ID       // empty: the page
}

// enter finds the engine's thread and gives it the binding for reports. A worker reports directly, not through the
// page.
func (p *Page) enter(ctx context.Context) error {
	add := command(runtime.AddBinding, runtime.AddBindingParams{Name: binding})
	if p.isolate.thread != WorkerThread {
		p.isolate.ctx = p.chrome.ctx
		tctx, cancel := p.within(ctx)
		defer cancel()
		return p.errorOf(ctx, chromedp.Do(tctx, add))
	}
	workers, err := p.workers(ctx)
	if err != nil {
		return err
	}
	if len(workers) != 1 {
		return fmt.Errorf("the page has %d workers instead of 1", len(workers))
	}
	p.isolate.worker = workers[0]
	wctx, end := chromedp.NewContext(p.chrome.ctx, chromedp.WithTargetID(workers[0]), chromedp.WithDetachOnCancel(),
		chromedp.WithListener(p.listen))
	p.isolate.ctx = wctx
	defer context.AfterFunc(ctx, end)()
	if err := chromedp.Do(wctx, command(network.Disable, cdp.Empty{}), add); err != nil {
		return fmt.Errorf("entering the page's worker: %w", p.errorOf(ctx, err))
	}
	return nil
}

// collect collects garbage in the engine's thread and the page's, so that the next readings only include what is held.
// After an unload a library's WebAssembly memory is garbage of tens of MiB.
func (p *Page) collect(ctx context.Context) error {
	for _, target := range []context.Context{p.isolate.ctx, p.chrome.ctx} {
		tctx, cancel := engine.Within(target, ctx)
		_, err := chromedp.Call(tctx, heapprofiler.CollectGarbage, cdp.Empty{})
		cancel()
		if err != nil {
			return fmt.Errorf("collecting the page's garbage: %w", p.errorOf(ctx, err))
		}
		if p.isolate.worker == "" {
			break // the same thread
		}
	}
	return nil
}
