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
)

// Thread says where in the page its engine runs.
type Thread string

// The choices.
const (
	PageThread   Thread = "page"   // on the page's main thread
	WorkerThread Thread = "worker" // in a dedicated worker of the page's
)

// isolate is the thread that the engine runs on: our page's own, or that of its worker. What is called there is the
// same on either.
type isolate struct {
	thread Thread
	ctx    context.Context // of its target; ends with the page's
	worker target.ID       // empty: it is the page
}

// enter finds the thread that the engine runs on, and lets it tell us things while it is busy: a worker tells them by
// itself, not by way of the page.
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
		return fmt.Errorf("the page has %d workers, and one was expected", len(workers))
	}
	p.isolate.worker = workers[0]
	wctx, end := chromedp.NewContext(p.chrome.ctx, chromedp.WithTargetID(workers[0]), chromedp.WithDetachOnCancel(),
		chromedp.WithListener(p.listen))
	p.isolate.ctx = wctx
	defer context.AfterFunc(ctx, end)()
	if err := chromedp.Do(wctx, quietenWorker, add); err != nil {
		return fmt.Errorf("entering the page's worker: %w", p.errorOf(ctx, err))
	}
	return nil
}

// collect makes the engine's thread, and the page's, let go of what nothing refers to: what is read next is what is
// held, not what nobody has cleared away yet. A library's WebAssembly memory is garbage after an unload, and tens of
// MiB.
func (p *Page) collect(ctx context.Context) error {
	for _, target := range []context.Context{p.isolate.ctx, p.chrome.ctx} {
		tctx, cancel := joined(target, ctx)
		_, err := chromedp.Call(tctx, heapprofiler.CollectGarbage, cdp.Empty{})
		cancel()
		if err != nil {
			return fmt.Errorf("collecting the page's garbage: %w", p.errorOf(ctx, err))
		}
		if p.isolate.worker == "" {
			break // they are the same
		}
	}
	return nil
}

// quietenWorker is quieten for a worker, which has fewer domains.
func quietenWorker(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
	_, err := cdp.Call(ctx, t, network.Disable, cdp.Empty{})
	return chromedp.Void{}, err
}
