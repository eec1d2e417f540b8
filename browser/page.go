// Package browser opens an engine's page in a browser, and measures both. It samples processes, reads memory from
// outside and inside, keeps a WebGPU ledger, compares the page's clock with ours, and reports how a page or GPU was
// lost.
//
// It knows no engine. An engine in a browser is a Runtime: its package has the engine's script, and prepares models and
// serves them. Start makes it a session. assets/page/host.js says what a script exports; examples/pagekind is complete.
//
// The browser is a driver.Tab, of a package below this one. Each launch starts a browser with an empty profile, so a
// load always fetches the model.
package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/browser/firefox"
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
	Kernels bool    // the page can time WebGPU kernels, for a profile
	Keeps   Keeps   // where the page keeps its model
	// Watchdog is how long the event loop of the engine's thread may be blocked; 0: engine.Watchdog. Waiting for the
	// GPU does not block it, and other blocking work is short: a large tokenizer takes some seconds on a slow machine.
	Watchdog time.Duration
	limits   *driver.Limits // for the stages of a start; nil: the usual ones
	fill     *filler        // nil: the profile is empty
	stored   string         // folder with the store that the profile gets; empty: none
}

// Find returns the browser to start; empty if one is attached.
func (c Config) Find() (string, error) {
	if c.Launch.Running() {
		return "", nil
	}
	path, err := find.Chrome(c.Chrome)
	if c.Adapter == Lavapipe && (err != nil || !firefox.Is(path)) {
		return find.Lavapipe()
	}
	return path, err
}

// options are for the driver.
func (c Config) options() driver.Options {
	o := driver.Options{Launch: c.Launch, Adapter: c.Adapter, Stored: c.stored}
	if c.limits != nil {
		o.Limits = *c.limits
	}
	o.Limits = o.Limits.OrDefault()
	return o
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

// Page is an engine's page in a browser.
type Page struct {
	config    Config
	site      Site
	path      string // of the browser
	driver    drives
	tab       driver.Tab
	device    *record.Device // how a GPU was looked for has to be kept; nil: not asked yet
	server    *serve.Server
	clock     pageClock
	processes processes
	warn      func(record.Warning)
	probe     engine.Probe // nil: nothing is measured
	ledger    *ledger
	thread    Thread        // where the engine runs
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

// Open starts the browser, repeatedly if it does not come up, and opens the site's page. If a GPU is asked for, it
// starts it in several ways, until one has a GPU.
func Open(ctx context.Context, c Config, s Site, to engine.Teller) (*Page, error) {
	path, err := c.Find()
	if err != nil {
		return nil, err
	}
	server, err := c.serves(s.Handler)
	if err != nil {
		return nil, err
	}
	once := func(c Config) (*Page, error) { return openOnce(ctx, path, c, s, server, to.Warn) }
	p, err := openIn(ctx, c, path, func(c Config) (p *Page, err error) {
		return p, engine.Repeat(ctx, to, strings.ToLower(c.drives(path).name), func() error {
			p, err = once(c)
			return err
		})
	})
	if err == nil && c.fill != nil {
		p, err = c.fill.again(ctx, p, to, once)
	}
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return p, nil
}

// serves serves a site where the browser reaches it.
func (c Config) serves(site http.Handler) (*serve.Server, error) {
	if c.Launch.Hand != nil {
		return c.Launch.Hand.Serve(site)
	}
	return serve.Loopback(site)
}

func openOnce(ctx context.Context, path string, config Config, site Site, s *serve.Server, warn func(record.Warning)) (
	*Page, error) {
	p := &Page{config: config, site: site, path: path, driver: config.drives(path), server: s, warn: warn,
		news: make(chan struct{}, 1), watchdog: cmp.Or(config.Watchdog, engine.Watchdog),
		thread:    cmp.Or(config.Thread, PageThread),
		processes: processes{attached: map[int][]func(){}, workers: map[string]bool{}}}
	p.ledger = &ledger{page: p}
	options := config.options()
	tab, err := p.driver.launch(ctx, path, options)
	if err != nil {
		return nil, err
	}
	p.tab = tab
	tab.Listen(hearing{p}) // events of the blank page do not matter
	for _, w := range tab.Facts().Warnings {
		warn(w)
	}
	if err := p.begin(ctx, options.Limits.Page); err != nil {
		return nil, tab.Failed(path, err)
	}
	return p, nil
}

// begin opens the page. If a browser that we started is lost or too slow meanwhile, the start is worth repeating.
func (p *Page) begin(ctx context.Context, limit time.Duration) error {
	if p.tab.Facts().Attached {
		return p.navigate(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := p.navigate(limited)
	_, aborted := errors.AsType[*driver.Aborted](err)
	if aborted {
		p.tab.LossComes() // to report the cause, too
	}
	switch failed := cmp.Or(p.lost(), err); {
	case err == nil || ctx.Err() != nil:
		return err
	case aborted || engine.ClassOf(failed) == record.Crash:
		return &engine.NotStarted{What: p.driver.name + " failed before the page was ready: " + failed.Error(),
			Words: p.tab.Telling(), Err: failed}
	case limited.Err() != nil:
		return &engine.NotStarted{What: fmt.Sprintf("%s's page was not ready within %g s", p.driver.name,
			limit.Seconds()),
			Words: p.tab.Telling(), Err: err}
	}
	return err
}

func (p *Page) navigate(ctx context.Context) error {
	url := fmt.Sprintf("%s/%s?thread=%s&power=%s", p.server.Base, p.site.Page, p.thread, p.config.Power)
	if p.driver.relay != "" {
		url += "&" + p.driver.relay
	}
	if p.config.Kernels {
		url += "&kernels"
	}
	err := p.tab.Open(ctx, p.server.Base, url)
	if err != nil {
		return p.tab.Unreachable(fmt.Errorf("opening the page: %w", p.errorOf(err)), p.server.Base)
	}
	found := make(chan error, 1)
	go func() { found <- p.tab.Identify(ctx) }()
	_, err = callIn[bool](ctx, p, PageThread, "llmparityPage.ready()")
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
	return p.tab.Enter(ctx, p.thread)
}

// Base is the address of the site's files.
func (p *Page) Base() string { return p.server.Base }

// Info returns the browser's part of an engine's description.
func (p *Page) Info() *record.EngineInfo {
	about := p.tab.Facts()
	info := &record.EngineInfo{Path: p.path, Args: about.Args, Parts: map[string]string{"browser": about.Product},
		Policy: map[string]string{"thread": string(p.thread),
			"garbage": "collected before the baseline and after the unload"}}
	maps.Copy(info.Parts, about.Parts)
	maps.Copy(info.Policy, about.Policy)
	if p.config.Power != "" {
		info.Policy["power_preference"] = p.config.Power
	}
	if id := find.BuildID(fmt.Sprintf("/proc/%d/exe", about.PID)); id != "" {
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
	if err := p.tab.Collect(ctx); err != nil {
		return err
	}
	if err := p.Attach(ctx, probe); err != nil {
		return err
	}
	return p.attachInside(ctx, probe)
}

// Unloaded collects garbage after the engine has released its memory, and compares the clocks again.
func (p *Page) Unloaded(ctx context.Context, probe engine.Probe) error {
	if err := p.tab.Collect(ctx); err != nil {
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

// Roles names the browser's processes.
func (p *Page) Roles(ctx context.Context) (map[int]string, error) { return p.tab.Roles(ctx) }

// Profile profiles the page and its current workers.
func (p *Page) Profile(ctx context.Context, kinds []engine.Profile) (func(context.Context, string) error, error) {
	return p.tab.Profile(ctx, kinds)
}

// Close ends the browser or detaches from it, and removes its files.
func (p *Page) Close() error {
	p.once.Do(func() {
		p.processes.detach()
		p.closeErr = errors.Join(p.tab.Close(), p.server.Close(), p.config.fill.clear())
	})
	return p.closeErr
}

// hearing is the page as it hears of its events.
type hearing struct{ *Page }

func (h hearing) Threw(t *driver.Thrown) {
	h.warn(record.Warning{Code: "page-exception", Text: h.failure(t).Error()})
}

// Said keeps the console's last error that names its kind ("ValueError: …"): a wasm prints there why it aborts, and
// then throws a bare exit status.
func (h hearing) Said(text string) {
	if !namedError.MatchString(text) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.abort = fault.OneLine(text)
}

func (h hearing) Reported(payload string) {
	var e pageEvent
	if err := json.Unmarshal([]byte(payload), &e); err != nil {
		h.tab.Lose(engine.Fail(record.Other, "the page sent an invalid report %.80q: %w", payload, err))
		return
	}
	switch {
	case e.Lost != nil:
		h.tab.Lose(engine.Fail(record.DeviceLost, "the WebGPU device was lost (%s): %s", e.Lost.Reason,
			fault.OneLine(e.Lost.Message)))
	case e.GPU != nil:
		h.tab.Lose(engine.Fail(h.classify(e.GPU.Kind), "WebGPU: %s: %s", e.GPU.Kind, fault.OneLine(e.GPU.Message)))
	default:
		h.ledger.reported(e.Ledger)
		h.mu.Lock()
		h.told.Tokens = append(h.told.Tokens, e.Tokens...)
		h.told.Scores = append(h.told.Scores, e.Scores...)
		h.mu.Unlock()
		select {
		case h.news <- struct{}{}:
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
