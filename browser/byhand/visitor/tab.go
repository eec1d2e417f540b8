package visitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"llmparity/browser/chrome"
	"llmparity/browser/driver"
	"llmparity/internal/engine"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// Tab is a frame of the person's page. It has no profile, no flags and no DevTools of ours.
type Tab struct {
	*driver.Process
	visitor  *Visitor
	thread   driver.Thread
	told     atomic.Pointer[driver.Listener] // hears the page's events; nil: nobody
	renderer atomic.Int64                    // the page's process; 0: unknown
	end      func()                          // ends what reads memory to show it
}

var _ driver.Tab = (*Tab)(nil)

// Tab returns a tab whose frame opens with its page.
func (v *Visitor) Tab(ctx context.Context, _ driver.Options) (driver.Tab, error) {
	t := &Tab{Process: &driver.Process{MemoryKills: -1}, visitor: v, thread: driver.PageThread, end: func() {}}
	t.Ctx, t.End = context.WithCancelCause(context.Background())
	v.mu.Lock()
	a := v.about
	v.tab = t
	v.mu.Unlock()
	f := &t.About
	f.Attached, f.Product = true, product(a.Agent)
	f.Policy = map[string]string{"isolation": record.OfTab, "window": "of a person's browser",
		"profile": "the browser's own", "garbage": "left to the browser"}
	f.Parts = map[string]string{"user_agent": a.Agent, "platform": a.Platform, "screen": a.Screen,
		"cores": fmt.Sprint(a.Cores)}
	if a.Memory > 0 {
		f.Parts["memory_gib"] = fmt.Sprint(a.Memory)
	}
	f.Warn("by-hand", "by hand, in this browser: %s on %s; it was running already, with its own flags and profile",
		f.Product, a.Platform)
	switch pid, err := v.process(ctx); {
	case err == nil:
		f.PID, t.MemoryKills = pid, machine.MemoryKills()
		f.Warn("attached", "the browser was already running: figures include its own page and services, and peak RSS is since its start")
	case v.Here():
		f.Warn("attached-elsewhere", "the browser's processes are not visible from here, so their memory is not available: %v", err)
	default:
		f.Warn("attached-elsewhere", "the browser is on another device (%s): the memory of its processes is not available, "+
			"and the machine in this record is the one that served the page", v.Machine())
	}
	go func() { // the page is lost with its connection
		select {
		case <-v.line.ctx.Done():
			t.Lose(engine.Fail(record.Crash, "%w", ErrClosed))
		case <-t.Ctx.Done():
		}
	}()
	return t, nil
}

// Listen sets who hears of the page's events.
func (t *Tab) Listen(l driver.Listener) { t.told.Store(&l) }

func (t *Tab) reported(payload string) {
	if l := t.told.Load(); l != nil {
		(*l).Reported(payload)
	}
}

func (t *Tab) threw(text string) {
	if l := t.told.Load(); l != nil {
		(*l).Threw(&driver.Thrown{Text: fault.OneLine(text)})
	}
}

func (t *Tab) said(text string) {
	if l := t.told.Load(); l != nil {
		(*l).Said(text)
	}
}

// Open opens the page in a new frame. The browser may know this server by another name, so only the path counts.
func (t *Tab) Open(ctx context.Context, _, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	_, err = t.ask(ctx, &asked{Open: u.RequestURI()})
	return err
}

// ask asks the page, which must be there.
func (t *Tab) ask(ctx context.Context, m *asked) (json.RawMessage, error) {
	both, cancel := engine.Within(t.Ctx, ctx)
	defer cancel()
	text, err := t.visitor.line.ask(both, m)
	if err == nil {
		return text, nil
	}
	if t.visitor.line.ctx.Err() != nil {
		t.Lose(engine.Fail(record.Crash, "%w", ErrClosed)) // it may be noticed here first
	}
	return nil, t.Meaning(ctx, err, "")
}

// Enter notes where the engine runs. The page passes on what a worker is asked and reports.
func (t *Tab) Enter(_ context.Context, thread driver.Thread) error {
	t.thread = thread
	return nil
}

// Evaluate evaluates an expression, which must be a call.
func (t *Tab) Evaluate(ctx context.Context, in driver.Thread, expression string) (json.RawMessage, error) {
	return t.ask(ctx, &asked{Call: expression, Thread: in})
}

// Turns waits for the event loop of the engine's thread to turn.
func (t *Tab) Turns(ctx context.Context) error {
	_, err := t.Evaluate(ctx, t.thread, "llmparity.now()")
	return err
}

// Answers waits for the person's page.
func (t *Tab) Answers(ctx context.Context) error { return t.visitor.line.socket.Ping(ctx) }

// Collect does nothing: a page cannot collect its garbage.
func (t *Tab) Collect(context.Context) error { return nil }

// memoryEvery is how often the page's heap is read.
const memoryEvery = 250 * time.Millisecond

// Inside is the JavaScript heap, where the browser tells it to pages.
func (t *Tab) Inside(ctx context.Context) ([]sample.Source, error) {
	read := func(ctx context.Context) (map[string]float64, error) {
		text, err := t.Evaluate(ctx, driver.PageThread, "llmparityPage.memory()")
		if err != nil {
			return nil, driver.Unread(ctx, t, err)
		}
		var m *struct{ Used, Total float64 }
		if err := json.Unmarshal(text, &m); err != nil || m == nil {
			return nil, errors.New("the browser does not tell the size of its heap")
		}
		return map[string]float64{"js_heap_used_bytes": m.Used, "js_heap_total_bytes": m.Total}, nil
	}
	if _, err := read(ctx); err != nil {
		return nil, t.Lost() // else there is no such source
	}
	return []sample.Source{&sample.Func{Values: read, Source: record.Source{Role: "page",
		Method: chrome.MethodPerformance, PID: t.Renderer(), Every: memoryEvery, Waits: true,
		Sees: "JavaScript heap of the page's main thread, used and total, as performance.memory tells it; the page by which " +
			"the person measures is in it",
		Blind: "array buffers, WebAssembly memory, GPU memory, workers' heaps; some browsers round it; uncollected garbage is included"}}}, nil
}

// Workers lists none: their heaps cannot be read.
func (t *Tab) Workers(context.Context) ([]string, error) { return nil, nil }

// Heap returns nothing, like Workers.
func (t *Tab) Heap(string) sample.Source { return nil }

// Adapter knows nothing that the page does not.
func (t *Tab) Adapter(context.Context) (*driver.Adapted, error) { return nil, nil }

// Profile refuses: only DevTools make profiles.
func (t *Tab) Profile(context.Context, []engine.Profile) (func(context.Context, string) error, error) {
	return nil, fault.New(fault.NotSupported, "use llmparity run", "a page that is opened by hand makes no profiles")
}

// Unreachable explains nothing: the page is open.
func (t *Tab) Unreachable(err error, _ string) error { return err }

// Failed removes the frame.
func (t *Tab) Failed(_ string, err error) error { return errors.Join(err, t.Close()) }

// Quit refuses: the browser is the person's.
func (t *Tab) Quit(context.Context) error {
	return errors.New("a browser that was opened by hand is not quit")
}

// shutTime is how long the page may take to free its memory and remove the frame.
const shutTime = 10 * time.Second

// Close removes the frame.
func (t *Tab) Close() error {
	if t.Ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(t.Ctx, shutTime)
		defer cancel()
		_, _ = t.visitor.line.ask(ctx, &asked{Shut: true}) // the page may be gone
	}
	t.Lose(driver.ErrClosed)
	t.end()
	t.visitor.mu.Lock()
	defer t.visitor.mu.Unlock()
	if t.visitor.tab == t {
		t.visitor.tab = nil
	}
	return nil
}
