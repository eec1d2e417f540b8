// Package browser starts Chrome or attaches to a running one, opens an engine's page, and measures both. It maps
// processes, reads memory from outside and inside, keeps a WebGPU ledger, compares the page's clock with ours, and
// reports how a page or GPU was lost. A Sheet draws pictures for reports.
//
// It knows no engine. An engine in a browser is a Runtime: its package has the engine's script, and prepares models and
// serves them. Start makes it a session. assets/page/host.js says what a script exports; examples/pagekind is complete.
//
// Limits: it only drives Chrome and its relatives, through DevTools. It does not see what a GPU driver allocates for
// WebGPU. Outside Linux it only knows the processes that the browser names. Each launch starts a browser with an empty
// profile, so a load always fetches the model.
package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"llmparity/browser/find"
	"llmparity/browser/serve"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Config configures the browser, and where in the page the engine runs.
type Config struct {
	Chrome  string  // path or name; empty: see find.Chrome
	Launch  Launch  // how the browser comes to run
	Adapter Adapter // empty: Auto
	Power   string  // power preference of the adapter; empty: as the engine asks
	Thread  Thread  // PageThread (or empty), WorkerThread
	// Watchdog is how long the event loop of the engine's thread may be blocked; 0: engine.Watchdog. Waiting for the
	// GPU does not block it, and other blocking work is short: a large tokenizer takes some seconds on a slow machine.
	Watchdog time.Duration
	limits   *limits // for the stages of a start; nil: the usual ones
}

// Site is an engine's page.
type Site struct {
	Handler http.Handler // serves the files, index.html at "/", only to the page; see package serve
	Page    string       // path of the page; empty: the root
	Title   string       // of the engine, for people
	Imports string       // what the page's script imports, for people
	Do      string       // advice if that fails
	// Elsewhere: it need not compute on the WebGPU adapter, so none is necessary, and Ran reports the device.
	Elsewhere bool
	// Classify classifies messages of the engine's own errors; nil, or an empty class: as the messages of any page.
	Classify func(message string) record.Class
}

// binding is the function with which an engine's script reports events during a call.
const binding = "llmparityEvent"

// Page is an engine's page in a browser.
type Page struct {
	config    Config
	site      Site
	path      string // of the browser
	chrome    *chrome
	id        target.ID
	server    *serve.Server
	clock     pageClock
	processes processes
	warn      func(record.Warning)
	ledger    *ledger
	isolate   isolate       // where the engine runs
	watchdog  time.Duration // how long the engine's thread may be blocked
	pending   chan struct{} // closed when a cancelled call has ended; nil: none

	mu    sync.Mutex
	abort string        // last message of the wasm
	told  Told          // reports not yet taken
	news  chan struct{} // has an item if there are reports

	once     sync.Once
	closeErr error
}

// Told is what the page reports during a call.
type Told struct {
	Tokens []float64   `json:"tokens"` // id and page time in turn
	Scores [][]float64 `json:"scores"` // one per token
}

// pageEvent is a report from the page.
type pageEvent struct {
	Told
	Ledger []float64 `json:"ledger"`
	Lost   *struct{ Reason, Message string }
	GPU    *struct{ Kind, Message string }
}

// Open starts the browser, repeatedly if it does not come up, and opens the site's page.
func Open(ctx context.Context, c Config, s Site, to engine.Teller) (*Page, error) {
	path, err := c.Find()
	if err != nil {
		return nil, err
	}
	server, err := serve.Loopback(s.Handler)
	if err != nil {
		return nil, err
	}
	var p *Page
	err = engine.Repeat(ctx, to, "chrome", func() error {
		p, err = openOnce(ctx, path, c, s, server, to.Warn)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return p, nil
}

func openOnce(ctx context.Context, path string, config Config, site Site, s *serve.Server, warn func(record.Warning)) (
	*Page, error) {
	p := &Page{config: config, site: site, path: path, server: s, warn: warn, news: make(chan struct{}, 1),
		watchdog:  cmp.Or(config.Watchdog, engine.Watchdog),
		processes: processes{attached: map[int][]func(){}, workers: map[target.ID]bool{}}}
	p.ledger = &ledger{page: p}
	p.isolate.thread = cmp.Or(config.Thread, PageThread)
	c, err := launch(ctx, path, config)
	if err != nil {
		return nil, err
	}
	p.chrome, p.id = c, chromedp.FromContext(c.ctx).Target.TargetID
	c.listen(p.listen) // events of the blank page do not matter
	for _, w := range c.warnings {
		warn(w)
	}
	if err := p.begin(ctx, config.limits.orDefault().page); err != nil {
		return nil, c.failed(path, err)
	}
	return p, nil
}

// begin opens the page. If a browser that we started is lost or too slow meanwhile, the start is worth repeating.
func (p *Page) begin(ctx context.Context, limit time.Duration) error {
	if p.chrome.attached {
		return p.navigate(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := p.navigate(limited)
	// The browser stops loading a page when the renderer ends meanwhile.
	load, _ := errors.AsType[*chromedp.LoadError](err)
	aborted := load != nil && load.ErrorText == "net::ERR_ABORTED"
	if aborted {
		p.lossComes() // to report the cause, too
	}
	switch failed := cmp.Or(p.lost(), err); {
	case err == nil || ctx.Err() != nil:
		return err
	case aborted || engine.ClassOf(failed) == record.Crash:
		return &engine.NotStarted{What: "Chrome failed before the page was ready: " + failed.Error(),
			Words: p.chrome.telling(), Err: failed}
	case limited.Err() != nil:
		return &engine.NotStarted{What: fmt.Sprintf("Chrome's page was not ready within %g s", limit.Seconds()),
			Words: p.chrome.telling(), Err: err}
	}
	return err
}

func (p *Page) navigate(ctx context.Context) error {
	nctx, cancel := p.within(ctx)
	defer cancel()
	err := chromedp.Do(nctx,
		// End chromedp's subscriptions for clicking and reading. Above all, with the network domain enabled the browser
		// keeps response bodies, and so a second copy of the weights.
		command(network.Disable, cdp.Empty{}), command(css.Disable, cdp.Empty{}), command(dom.Disable, cdp.Empty{}),
		chromedp.Navigate(fmt.Sprintf("%s/%s?thread=%s&power=%s", p.server.Base, p.site.Page, p.isolate.thread,
			p.config.Power)),
	)
	if err != nil {
		return p.chrome.unreachable(fmt.Errorf("opening the page: %w", p.errorOf(ctx, err)), p.server.Base)
	}
	// Find the page's process while the page compiles its engine.
	found := make(chan error, 1)
	go func() { found <- p.findRenderer(ctx) }()
	_, err = callIn[bool](ctx, p, p.chrome.ctx, "llmparityPage.started.then(() => true)")
	unfound := <-found
	if err != nil {
		var thrown *engine.Failure
		vague := errors.As(err, &thrown) && (thrown.Class == record.Other || thrown.Class == record.Download)
		if vague && fault.Of(err) != fault.DiskFull {
			return fault.Wrap(fault.NoBundle, err, p.site.Do, "%s cannot be started", p.site.Imports)
		}
		return fmt.Errorf("starting the page: %w", err)
	}
	if unfound != nil {
		return unfound
	}
	return p.enter(ctx)
}

func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		var none chromedp.Void
		_, err := cdp.Call(ctx, t, c, params)
		return none, err
	}
}

// Base is the address of the site's files.
func (p *Page) Base() string { return p.server.Base }

// Info returns the browser's part of an engine's description.
func (p *Page) Info() *record.EngineInfo {
	v := p.chrome.version
	info := &record.EngineInfo{Path: p.path, Args: p.chrome.args,
		Parts: map[string]string{"browser": v.Product, "user_agent": v.UserAgent, "javascript": v.JsVersion},
		Policy: map[string]string{"thread": string(p.isolate.thread),
			"garbage": "collected before the baseline and after the unload"}}
	maps.Copy(info.Policy, p.chrome.policy)
	if p.config.Power != "" {
		info.Policy["power_preference"] = p.config.Power
	}
	if id := find.BuildID(fmt.Sprintf("/proc/%d/exe", p.chrome.pid)); id != "" {
		info.Parts["browser_build_id"] = id
	}
	return info
}

// Measure starts measuring: it compares the clocks, collects garbage, and attaches all sources.
func (p *Page) Measure(ctx context.Context, probe engine.Probe) error {
	p.clock = pageClock{anchor: time.Now()}
	clock, err := p.measureClock(ctx, "start")
	if err != nil {
		return err
	}
	p.clock.offset = clock.OffsetNS
	probe.Event(record.Event{At: time.Now(), Clock: &clock})
	if err := p.collect(ctx); err != nil {
		return err
	}
	if err := p.Attach(ctx, probe); err != nil {
		return err
	}
	return p.attachInside(ctx, probe)
}

// Unloaded collects garbage after the engine has released its memory, and compares the clocks again.
func (p *Page) Unloaded(ctx context.Context, probe engine.Probe) error {
	if err := p.collect(ctx); err != nil {
		return err
	}
	clock, err := p.measureClock(ctx, "end")
	if err != nil {
		return err
	}
	probe.Event(record.Event{At: time.Now(), Clock: &clock})
	p.clock.drifted(probe, clock)
	return nil
}

// Close ends the browser or detaches from it, and removes its files.
func (p *Page) Close() error {
	p.once.Do(func() {
		p.processes.detach()
		p.closeErr = errors.Join(p.chrome.close(), p.server.Close())
	})
	return p.closeErr
}

// listen handles the tab's events on the goroutine that reads them, so it must be fast. An event that precedes the
// answer to a call is handled before the call returns.
func (p *Page) listen(ev any) {
	switch ev := ev.(type) {
	case *runtime.EventBindingCalled:
		if ev.Name == binding {
			p.reported(ev.Payload)
		}
	case *runtime.EventExceptionThrown:
		e := &chromedp.ExceptionError{ExceptionDetails: ev.ExceptionDetails}
		p.warn(record.Warning{Code: "page-exception", Text: p.thrown(e).Error()})
	case *runtime.EventConsoleAPICalled:
		p.said(ev)
	case *target.EventTargetCrashed: // of any target of the browser
		if ev.TargetID == p.id {
			p.crashed(ev.Status, 0)
		}
	case *inspector.EventTargetCrashed:
		p.crashed("crashed", wordsCome)
	}
}

// said keeps the console's last error that names its kind ("ValueError: …"): a wasm prints there why it aborts, and
// then throws a bare exit status.
func (p *Page) said(ev *runtime.EventConsoleAPICalled) {
	if ev.Type != runtime.ConsoleAPICalledTypeError || len(ev.Args) == 0 {
		return
	}
	var text string
	if json.Unmarshal(ev.Args[0].Value, &text) != nil || !namedError.MatchString(text) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.abort = fault.OneLine(text)
}

func (p *Page) reported(payload string) {
	var e pageEvent
	if err := json.Unmarshal([]byte(payload), &e); err != nil {
		p.chrome.lose(engine.Fail(record.Other, "the page sent an invalid report %.80q: %w", payload, err))
		return
	}
	switch {
	case e.Lost != nil:
		p.chrome.lose(engine.Fail(record.DeviceLost, "the WebGPU device was lost (%s): %s", e.Lost.Reason,
			fault.OneLine(e.Lost.Message)))
	case e.GPU != nil:
		p.chrome.lose(engine.Fail(p.classify(e.GPU.Kind), "WebGPU: %s: %s", e.GPU.Kind, fault.OneLine(e.GPU.Message)))
	default:
		p.ledger.reported(e.Ledger)
		p.mu.Lock()
		p.told.Tokens = append(p.told.Tokens, e.Tokens...)
		p.told.Scores = append(p.told.Scores, e.Scores...)
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
}

// take returns and clears what was reported.
func (p *Page) take() Told {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.told
	p.told = Told{}
	return t
}
