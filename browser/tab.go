package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// binding is what engine.js calls to tell us something while it is busy.
const binding = "llmparityEvent"

// tab is our page in a browser: what it is asked, and what it tells.
type tab struct {
	chrome    *chrome
	id        target.ID
	server    *server
	page      string // its address below the server's
	clock     pageClock
	processes processes
	warn      func(record.Warning)
	bundle    Bundle
	ledger    *ledger
	isolate   isolate       // where the engine runs
	watchdog  time.Duration // how long it may give no sign of life

	mu     sync.Mutex
	abort  string        // what the wasm said last before it aborted
	tokens []float64     // id and time, in turn, that nobody took yet
	scores [][]float64   // nor these
	news   chan struct{} // holds one item when there are tokens
}

// pageEvent is one thing that the page tells by itself.
type pageEvent struct {
	Tokens []float64   `json:"tokens"`
	Scores [][]float64 `json:"scores"`
	Ledger []float64   `json:"ledger"`
	Lost   *struct{ Reason, Message string }
	GPU    *struct{ Kind, Message string }
}

// openTab starts the browser, again where it does not come up, and opens the page in it.
func openTab(ctx context.Context, path string, config Config, s *server, to engine.Teller) (p *tab, err error) {
	err = starts(ctx, to, func() error {
		p, err = openOnce(ctx, path, config, s, to.Warn)
		return err
	})
	return p, err
}

func openOnce(ctx context.Context, path string, config Config, s *server, warn func(record.Warning)) (*tab, error) {
	p := &tab{server: s, page: config.page, warn: warn, bundle: config.Bundle, news: make(chan struct{}, 1),
		processes: processes{attached: map[int][]func(){}, workers: map[target.ID]bool{}}}
	p.ledger = &ledger{tab: p}
	p.isolate.thread = cmp.Or(config.Thread, PageThread)
	p.watchdog = cmp.Or(config.Watchdog, engine.Watchdog)
	ready := make(chan struct{}) // the listener must not run before p.chrome and p.id are set
	c, err := launch(ctx, path, config, func(ev any) {
		select {
		case <-ready:
			p.listen(ev)
		default: // what happens on the blank page is of no interest
		}
	})
	if err != nil {
		return nil, err
	}
	p.chrome, p.id = c, chromedp.FromContext(c.ctx).Target.TargetID
	close(ready)
	if c.hasCrashed() {
		p.crashed("crashed", wordsCome)
	}
	for _, w := range c.warnings {
		warn(w)
	}
	if err := p.begin(ctx, config.limits.orDefault().page); err != nil {
		var failed *engine.NotStarted
		if errors.As(err, &failed) {
			return nil, c.failed(path, failed)
		}
		if closing := c.close(); closing != nil {
			return nil, fmt.Errorf("%w (and closing the browser: %v)", err, closing)
		}
		return nil, err
	}
	return p, nil
}

// begin opens the page. A browser of ours that is lost meanwhile, or takes too long, has not started.
func (p *tab) begin(ctx context.Context, limit time.Duration) error {
	if p.chrome.attached {
		return p.navigate(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := p.navigate(limited)
	switch lost := p.lost(); {
	case err == nil || ctx.Err() != nil:
		return err
	case engine.ClassOf(lost) == record.Crash:
		return &engine.NotStarted{What: "Chrome was lost before the page was ready: " + lost.Error(), Err: lost}
	case limited.Err() != nil:
		return &engine.NotStarted{What: fmt.Sprintf("Chrome's page was not ready within %g s", limit.Seconds()),
			Words: p.chrome.telling(), Err: err}
	}
	return err
}

func (p *tab) navigate(ctx context.Context) error {
	nctx, cancel := p.within(ctx)
	defer cancel()
	err := chromedp.Do(nctx,
		quieten,
		chromedp.Navigate(fmt.Sprintf("%s/%s?thread=%s", p.server.base, p.page, p.isolate.thread)),
	)
	if err != nil {
		return p.chrome.unreachable(fmt.Errorf("opening the page: %w", p.errorOf(ctx, err)), p.server.base)
	}
	// Which process renders the page is found out while the page compiles WebLLM.
	found := make(chan error, 1)
	go func() { found <- p.findRenderer(ctx) }()
	_, err = callPage[bool](ctx, p, "llmparityPage.started.then(() => true)")
	unfound := <-found
	if err != nil {
		var thrown *engine.Failure
		if errors.As(err, &thrown) && (thrown.Class == record.Other || thrown.Class == record.Download) {
			return fault.Wrap(fault.NoBundle, err,
				"run make setup and build again, or choose another --webllm-version or --webllm-bundle",
				"%s can't be started", p.bundle)
		}
		return fmt.Errorf("starting the page: %w", err)
	}
	if unfound != nil {
		return unfound
	}
	return p.enter(ctx)
}

// quieten ends what chromedp subscribes to for clicking and reading, which costs the page: above all, with the network
// domain on, the browser keeps the bodies of responses, and so a second copy of the weights.
func quieten(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
	var none chromedp.Void
	for _, c := range []cdp.Command[cdp.Empty, cdp.Empty]{network.Disable, css.Disable, dom.Disable} {
		if _, err := cdp.Call(ctx, t, c, cdp.Empty{}); err != nil {
			return none, err
		}
	}
	return none, nil
}

func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		var none chromedp.Void
		_, err := cdp.Call(ctx, t, c, params)
		return none, err
	}
}

// within is a context for calls to the page that ends with ctx, and at once when the page is lost: a call to a crashed
// page is never answered.
func (p *tab) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return joined(p.chrome.ctx, ctx)
}

// call evaluates an expression where the engine runs and waits for its promise.
func call[T any](ctx context.Context, p *tab, expression string) (T, error) {
	return callIn[T](ctx, p, p.isolate.ctx, expression)
}

// callPage evaluates an expression in the page, wherever the engine runs.
func callPage[T any](ctx context.Context, p *tab, expression string) (T, error) {
	return callIn[T](ctx, p, p.chrome.ctx, expression)
}

func callIn[T any](ctx context.Context, p *tab, target context.Context, expression string) (T, error) {
	both, cancel := joined(target, ctx)
	defer cancel()
	v, err := chromedp.Run(both, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		return v, p.errorOf(ctx, err)
	}
	return v, nil
}

// callWith calls a function of the engine's with one argument.
func callWith[T any](ctx context.Context, p *tab, function string, argument any) (T, error) {
	text, err := json.Marshal(argument)
	if err != nil {
		var none T
		return none, fmt.Errorf("encoding the argument of %s: %w", function, err)
	}
	return call[T](ctx, p, fmt.Sprintf("%s(%s)", function, text))
}

// listen sees the tab's events, on the goroutine that reads them: it must be quick. An event that comes before the
// answer to a call is seen before the call returns.
func (p *tab) listen(ev any) {
	switch ev := ev.(type) {
	case *runtime.EventBindingCalled:
		if ev.Name == binding {
			p.reported(ev.Payload)
		}
	case *runtime.EventExceptionThrown:
		e := &chromedp.ExceptionError{ExceptionDetails: ev.ExceptionDetails}
		p.warn(record.Warning{Code: "page-exception", Text: thrownError(e).Error()})
	case *runtime.EventConsoleAPICalled:
		p.said(ev)
	case *page.EventFrameNavigated:
		if ev.Frame.ParentID == "" {
			p.processes.moved.Store(true)
		}
	case *target.EventTargetCrashed: // of any target of the browser's
		if ev.TargetID == p.id {
			p.crashed(ev.Status, 0)
		}
	case *inspector.EventTargetCrashed:
		p.crashed("crashed", wordsCome)
	}
}

// said keeps the console's last error that reads like one of TVM's ("ValueError: …"): the wasm says there why it
// aborts, and throws a bare exit status.
func (p *tab) said(ev *runtime.EventConsoleAPICalled) {
	if ev.Type != runtime.ConsoleAPICalledTypeError || len(ev.Args) == 0 {
		return
	}
	var text string
	if json.Unmarshal(ev.Args[0].Value, &text) != nil || !tvmError.MatchString(text) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abort = fault.OneLine(text)
}

func (p *tab) reported(payload string) {
	var e pageEvent
	if err := json.Unmarshal([]byte(payload), &e); err != nil {
		p.chrome.lose(engine.Fail(record.Other, "the page told %.80q: %w", payload, err))
		return
	}
	switch {
	case e.Lost != nil:
		p.chrome.lose(engine.Fail(record.DeviceLost, "the WebGPU device is lost (%s): %s", e.Lost.Reason,
			fault.OneLine(e.Lost.Message)))
	case e.GPU != nil:
		p.chrome.lose(engine.Fail(classify(e.GPU.Kind), "WebGPU: %s: %s", e.GPU.Kind, fault.OneLine(e.GPU.Message)))
	default:
		p.ledger.reported(e.Ledger)
		p.mu.Lock()
		p.tokens = append(p.tokens, e.Tokens...)
		p.scores = append(p.scores, e.Scores...)
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
}

// forget drops what belongs to an earlier call.
func (p *tab) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abort, p.tokens, p.scores = "", nil, nil
}

// takeScores gives the scores that came since the last time.
func (p *tab) takeScores() [][]float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.scores
	p.scores = nil
	return s
}

// take gives the tokens that came since the last time.
func (p *tab) take() []float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tokens
	p.tokens = nil
	return t
}
