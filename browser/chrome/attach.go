package chrome

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/browser/flags"
	"llmparity/internal/engine"
	"llmparity/internal/host/machine"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// answers is how long a browser that llmparity attaches to may take for its first answers.
const answers = 10 * time.Second

// attach opens a tab in a running browser, and touches nothing else of it.
func attach(ctx context.Context, o driver.Options) (_ *Tab, err error) {
	address := o.Attach
	socket, at, err := find.Endpoint(ctx, address, answers)
	if err != nil {
		return nil, err
	}
	t := &Tab{Process: &driver.Process{MemoryKills: -1, About: driver.Facts{Attached: true,
		Policy: map[string]string{"isolation": record.OfTab, "window": "of a running browser"}}}}
	base, cancel := context.WithCancel(context.Background())
	alloc, endAlloc := remote.NewAllocator(base, socket, remote.NoModifyURL)
	wait := chromedp.FromContext(alloc).Allocator.Wait
	var first context.Context
	t.end = sync.OnceFunc(func() { cancel(); wait(); endAlloc() })
	defer func() {
		if err != nil {
			t.end()
			t.StagesEnded()
		}
	}()
	heard := t.overhear()
	err = t.Stage(ctx, o.Limits.OrDefault().Answer, "its tab", t.crashed, func() (err error) {
		first, err = t.openIn(alloc, heard)
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("attaching to %s: %w", address, ctx.Err())
		}
		return nil, fault.Wrap(fault.NoChrome, err,
			"start another one with --remote-debugging-port and its own --user-data-dir",
			"cannot open a tab in the browser at %s", address)
	}
	t.lasts(first)
	if err = t.ask(first); err != nil {
		return nil, fmt.Errorf("asking the browser for its version: %w", err)
	}
	t.ID = chromedp.FromContext(first).Target.TargetID
	t.watchTab()
	return t, t.meet(first, address, at)
}

// watchTab notices if a user closes the tab, since calls to it would wait for ever.
func (t *Tab) watchTab() {
	closed, err := chromedp.Detached(t.Ctx)
	if err != nil {
		return // already lost
	}
	go func() {
		select {
		case <-closed:
			t.Lose(engine.Fail(record.Crash, "the page's tab was closed"))
		case <-t.Ctx.Done():
		}
	}()
}

// openIn opens a tab in its own browser context, with its own storage, if the browser supports that.
func (t *Tab) openIn(alloc context.Context, listen func(any)) (context.Context, error) {
	options := []chromedp.ContextOption{chromedp.WithListener(listen), chromedp.WithLogf(unlogged),
		chromedp.WithErrorf(unlogged)}
	t.About.Policy["profile"] = "in memory, only for the tab"
	tab, _ := chromedp.NewContext(alloc, append(options, chromedp.WithNewBrowserContext())...) // ends with alloc
	err := chromedp.Do(tab)
	if err == nil || tab.Err() != nil || chromedp.FromContext(tab).Browser == nil {
		return tab, err
	}
	t.About.Policy["profile"] = "the browser's"
	t.About.Warn("attached-profile", "the browser cannot make a browser context for the tab (%v), so the page uses the browser's own storage", err)
	tab, _ = chromedp.NewContext(alloc, options...)
	return tab, chromedp.Do(tab)
}

// needed are flags of every browser that we start, and what is missing without them.
var needed = []struct{ flag, without string }{
	{"enable-unsafe-webgpu", "WebGPU may be missing, or have fewer features"},
	{"enable-precise-memory-info", "performance.memory is rounded"},
	{flags.EagerMeasuring, "measureUserAgentSpecificMemory would wait for a garbage collection, so it is not read"},
	{"disable-renderer-backgrounding", "a covered tab is slowed down"},
}

// meet finds out about the browser's processes, if they are on this machine, and its flags.
func (t *Tab) meet(tab context.Context, address string, at *net.TCPAddr) error {
	ctx, cancel := context.WithTimeout(tab, answers)
	defer cancel()
	info, err := chromedp.CallBrowser(ctx, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		return fmt.Errorf("asking for the browser's processes: %w", err)
	}
	// The port may be forwarded or a container's, and the pid may be that of an unrelated process here.
	listens, _ := proc.PIDOfListener(ctx, at.String())
	for _, i := range info.ProcessInfo {
		if i.Type == "browser" && int(i.ID) == listens {
			t.About.PID, t.MemoryKills = listens, machine.MemoryKills()
		}
	}
	if t.About.PID == 0 {
		t.About.Warn("attached-elsewhere", "the browser at %s is on another machine or another user's; the memory of its processes is not available", address)
	} else {
		t.About.Warn("attached", "the browser at %s was already running: figures include its other tabs and extensions, and peak RSS is since its start", address)
	}
	system, err := chromedp.CallBrowser(ctx, systeminfo.GetInfo, cdp.Empty{})
	if err != nil {
		t.About.Warn("attached-flags", "the flags of the browser at %s are unknown: %v", address, err)
		return nil
	}
	t.About.Args = strings.Fields(system.CommandLine)
	t.eager = strings.Contains(system.CommandLine, flags.EagerMeasuring)
	for _, n := range needed {
		if !strings.Contains(system.CommandLine, n.flag) {
			t.About.Warn("attached-flags", "the browser at %s lacks the flag %s: %s", address, n.flag, n.without)
		}
	}
	return nil
}

// letGo closes our tab and the connection.
func (t *Tab) letGo() error {
	lost := t.Ctx.Err() != nil
	t.Lose(driver.ErrClosed)
	err := chromedp.Cancel(t.Ctx)
	t.end()
	if lost {
		return nil // the browser may be gone
	}
	return err
}

// Unreachable explains why the page did not open in a browser on another machine.
func (t *Tab) Unreachable(err error, base string) error {
	if !t.About.Attached || !strings.Contains(err.Error(), "net::ERR_") {
		return err
	}
	return fault.Wrap(fault.NoChrome, err, "run llmparity where the browser runs",
		"the attached browser cannot reach the page at %s; it is on another machine, in a container, or behind a proxy", base)
}
