package browser

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

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
func attach(ctx context.Context, config Config) (_ *chrome, err error) {
	address := config.Launch.Attach
	socket, at, err := find.Endpoint(ctx, address, answers)
	if err != nil {
		return nil, err
	}
	c := &chrome{attached: true, memoryKills: -1,
		policy: map[string]string{"isolation": record.OfTab, "window": "of a running browser"}}
	base, cancel := context.WithCancel(context.Background())
	alloc, endAlloc := remote.NewAllocator(base, socket, remote.NoModifyURL)
	wait := chromedp.FromContext(alloc).Allocator.Wait
	var tab context.Context
	c.end = sync.OnceFunc(func() { cancel(); wait(); endAlloc() })
	defer func() {
		if err != nil {
			c.end()
			c.calls.Wait()
		}
	}()
	heard := c.overhear()
	err = c.stage(ctx, config.limits.orDefault().answer, "its tab", func() (err error) {
		tab, err = c.openIn(alloc, heard)
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
	c.ctx, c.lose = context.WithCancelCause(tab)
	if c.version, err = chromedp.CallBrowser(tab, browser.GetVersion, cdp.Empty{}); err != nil {
		return nil, fmt.Errorf("asking the browser for its version: %w", err)
	}
	c.watchTab()
	return c, c.meet(tab, address, at)
}

// watchTab notices if a user closes the tab, since calls to it would wait for ever.
func (c *chrome) watchTab() {
	closed, err := chromedp.Detached(c.ctx)
	if err != nil {
		return // already lost
	}
	go func() {
		select {
		case <-closed:
			c.lose(engine.Fail(record.Crash, "the page's tab was closed"))
		case <-c.ctx.Done():
		}
	}()
}

// openIn opens a tab in its own browser context, with its own storage, if the browser supports that.
func (c *chrome) openIn(alloc context.Context, listen func(any)) (context.Context, error) {
	options := []chromedp.ContextOption{chromedp.WithListener(listen), chromedp.WithLogf(unlogged),
		chromedp.WithErrorf(unlogged)}
	c.policy["profile"] = "in memory, only for the tab"
	tab, _ := chromedp.NewContext(alloc, append(options, chromedp.WithNewBrowserContext())...) // ends with alloc
	err := chromedp.Do(tab)
	if err == nil || tab.Err() != nil || chromedp.FromContext(tab).Browser == nil {
		return tab, err
	}
	c.policy["profile"] = "the browser's"
	c.warn("attached-profile", "the browser cannot make a browser context for the tab (%v), so the page uses the browser's own storage", err)
	tab, _ = chromedp.NewContext(alloc, options...)
	return tab, chromedp.Do(tab)
}

func (c *chrome) warn(code, format string, args ...any) {
	c.warnings = append(c.warnings, record.Warning{Code: code, Text: fault.OneLine(fmt.Sprintf(format, args...))})
}

// needed are flags of every browser that we start, and what is missing without them.
var needed = []struct{ flag, without string }{
	{"enable-unsafe-webgpu", "WebGPU may be missing, or have fewer features"},
	{"enable-precise-memory-info", "performance.memory is rounded"},
	{flags.EagerMeasuring, "measureUserAgentSpecificMemory would wait for a garbage collection, so it is not read"},
	{"disable-renderer-backgrounding", "a covered tab is slowed down"},
}

// meet finds out about the browser's processes, if they are on this machine, and its flags.
func (c *chrome) meet(tab context.Context, address string, at *net.TCPAddr) error {
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
			c.pid, c.memoryKills = listens, machine.MemoryKills()
		}
	}
	if c.pid == 0 {
		c.warn("attached-elsewhere", "the browser at %s is on another machine or another user's; the memory of its processes is not available", address)
	} else {
		c.warn("attached", "the browser at %s was already running: figures include its other tabs and extensions, and peak RSS is since its start", address)
	}
	system, err := chromedp.CallBrowser(ctx, systeminfo.GetInfo, cdp.Empty{})
	if err != nil {
		c.warn("attached-flags", "the flags of the browser at %s are unknown: %v", address, err)
		return nil
	}
	c.args = strings.Fields(system.CommandLine)
	c.eager = strings.Contains(system.CommandLine, flags.EagerMeasuring)
	for _, n := range needed {
		if !strings.Contains(system.CommandLine, n.flag) {
			c.warn("attached-flags", "the browser at %s lacks the flag %s: %s", address, n.flag, n.without)
		}
	}
	return nil
}

// letGo closes our tab and the connection.
func (c *chrome) letGo() error {
	lost := c.ctx.Err() != nil
	c.lose(errClosed)
	err := chromedp.Cancel(c.ctx)
	c.end()
	if lost {
		return nil // the browser may be gone
	}
	return err
}

// unreachable explains why the page did not open in a browser on another machine.
func (c *chrome) unreachable(err error, base string) error {
	if !c.attached || !strings.Contains(err.Error(), "net::ERR_") {
		return err
	}
	return fault.Wrap(fault.NoChrome, err, "run llmparity where the browser runs",
		"the attached browser cannot reach the page at %s; it is on another machine, in a container, or behind a proxy", base)
}
