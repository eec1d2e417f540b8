package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
	sockets "github.com/shirou/gopsutil/v3/net"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/machine"
	"llmparity/internal/record"
)

// answers is how long a browser that is attached to may take to answer what is asked first.
const answers = 10 * time.Second

// parseAddress reads where a running browser listens: HOST:PORT, http://HOST:PORT or its whole address,
// ws://HOST:PORT/devtools/browser/ID.
func parseAddress(text string) (*url.URL, error) {
	whole := text
	if !strings.Contains(text, "://") {
		whole = "http://" + text
	}
	u, err := url.Parse(whole)
	if err != nil || u.Hostname() == "" || u.Port() == "" || !slices.Contains([]string{"http", "ws"}, u.Scheme) {
		return nil, fault.New(fault.Usage,
			"give HOST:PORT or ws://HOST:PORT/devtools/browser/ID, of a browser that was started with --remote-debugging-port",
			"--attach %q is no address of a browser", text)
	}
	return u, nil
}

// endpoint gives the WebSocket of the browser at an address, and where that is by number: a browser talks to nobody who
// calls it by a name.
func endpoint(ctx context.Context, address string) (string, *net.TCPAddr, error) {
	u, err := parseAddress(address)
	if err != nil {
		return "", nil, err
	}
	unreachable := func(err error) error {
		return fault.Wrap(fault.NoChrome, err, "start one with --remote-debugging-port="+u.Port()+
			" and a --user-data-dir of its own", "no browser answers at %s", address)
	}
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	var dialer net.Dialer
	line, err := dialer.DialContext(ctx, "tcp", u.Host) // of a name's addresses, the one where somebody listens
	if err != nil {
		return "", nil, unreachable(err)
	}
	at := line.RemoteAddr().(*net.TCPAddr)
	_ = line.Close() // nothing was sent
	u.Host = at.String()
	if strings.HasPrefix(u.Path, "/devtools/browser/") {
		u.Scheme = "ws"
		return u.String(), at, nil
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // without a proxy
	u.Scheme, u.Path = "http", "/json/version"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", nil, unreachable(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", nil, unreachable(err)
	}
	defer answer.Body.Close()
	var v struct {
		Socket string `json:"webSocketDebuggerUrl"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, answer.Body, 1<<20)).Decode(&v); err != nil {
		return "", nil, unreachable(fmt.Errorf("what listens there is none (%s): %w", answer.Status, err))
	}
	socket, err := url.Parse(v.Socket)
	if err != nil || socket.Path == "" {
		return "", nil, unreachable(errors.New("what listens there does not tell a browser's address"))
	}
	// The port is the one that we came by: a forwarded one has another number at its other end.
	socket.Scheme, socket.Host = "ws", u.Host
	return socket.String(), at, nil
}

// attach opens a tab in a browser that runs already. Nothing else of it is touched.
func attach(ctx context.Context, config Config) (_ *chrome, err error) {
	address := config.Launch.Attach
	socket, at, err := endpoint(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &chrome{attached: true, memoryKills: -1,
		policy: map[string]string{"isolation": record.OfTab, "window": "of a browser that ran already"}}
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
			"start another with --remote-debugging-port and a --user-data-dir of its own",
			"the browser at %s gives no tab", address)
	}
	c.ctx, c.lose = context.WithCancelCause(tab)
	if c.version, err = chromedp.CallBrowser(tab, browser.GetVersion, cdp.Empty{}); err != nil {
		return nil, fmt.Errorf("asking the browser for its version: %w", err)
	}
	c.watchTab()
	return c, c.meet(tab, address, at)
}

// watchTab notices that somebody closes the tab, who can see it: calls to it would wait for ever.
func (c *chrome) watchTab() {
	closed, err := chromedp.Detached(c.ctx)
	if err != nil {
		return // it is lost already
	}
	go func() {
		select {
		case <-closed:
			c.lose(engine.Fail(record.Crash, "the page's tab was closed"))
		case <-c.ctx.Done():
		}
	}()
}

// openIn opens a tab: in a browser context of its own, with storage of its own, where the browser makes one.
func (c *chrome) openIn(alloc context.Context, listen func(any)) (context.Context, error) {
	options := []chromedp.ContextOption{chromedp.WithListener(listen), chromedp.WithLogf(unlogged),
		chromedp.WithErrorf(unlogged)}
	c.policy["profile"] = "in memory, of the tab's own"
	tab, _ := chromedp.NewContext(alloc, append(options, chromedp.WithNewBrowserContext())...) // ends with alloc
	err := chromedp.Do(tab)
	if err == nil || tab.Err() != nil || chromedp.FromContext(tab).Browser == nil {
		return tab, err
	}
	c.policy["profile"] = "the browser's"
	c.warn("attached-profile", "the browser makes no browser context for the tab (%v): the page's storage is the browser's own, and what it has there stays", err)
	tab, _ = chromedp.NewContext(alloc, options...)
	return tab, chromedp.Do(tab)
}

func (c *chrome) warn(code, format string, args ...any) {
	c.warnings = append(c.warnings, record.Warning{Code: code, Text: fault.OneLine(fmt.Sprintf(format, args...))})
}

// needed are flags that every browser has that we start, and what lacks without them.
var needed = []struct{ flag, without string }{
	{"enable-unsafe-webgpu", "WebGPU may be missing, or have fewer features"},
	{"enable-precise-memory-info", "performance.memory is rounded"},
	{eagerMeasuring, "measureUserAgentSpecificMemory would wait for a garbage collection, and is absent"},
	{"disable-renderer-backgrounding", "a tab that is covered is slowed down"},
}

// meet finds out what the browser is: its processes, where they are on this machine, and how it was started.
func (c *chrome) meet(tab context.Context, address string, at *net.TCPAddr) error {
	ctx, cancel := context.WithTimeout(tab, answers)
	defer cancel()
	info, err := chromedp.CallBrowser(ctx, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		return fmt.Errorf("asking for the browser's processes: %w", err)
	}
	for _, i := range info.ProcessInfo {
		// A forwarded port, or a container's, is some other program's here, and a process number of there is somebody
		// else's here.
		if i.Type == "browser" && listens(int32(i.ID), at) {
			c.pid, c.memoryKills = int(i.ID), machine.MemoryKills()
		}
	}
	if c.pid == 0 {
		c.warn("attached-elsewhere", "the browser at %s is not on this machine, or is another user's: the memory of its processes can't be read and is absent", address)
	} else {
		c.warn("attached", "the browser at %s ran already: its figures include its other tabs and extensions, and its highest RSS is the one since its start", address)
	}
	system, err := chromedp.CallBrowser(ctx, systeminfo.GetInfo, cdp.Empty{})
	if err != nil {
		c.warn("attached-flags", "how the browser at %s was started is not known: %v", address, err)
		return nil
	}
	c.args = strings.Fields(system.CommandLine)
	c.eager = strings.Contains(system.CommandLine, eagerMeasuring)
	for _, n := range needed {
		if !strings.Contains(system.CommandLine, n.flag) {
			c.warn("attached-flags", "the browser at %s runs without %s: %s", address, n.flag, n.without)
		}
	}
	return nil
}

// listens tells whether a process of this machine listens at an address, as far as we may see that.
func listens(pid int32, at *net.TCPAddr) bool {
	own, _ := net.InterfaceAddrs() // none: it is not here
	here := at.IP.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(at.IP)
	})
	open, _ := sockets.ConnectionsPid("tcp", pid) // none that may be seen
	return here && slices.ContainsFunc(open, func(s sockets.ConnectionStat) bool {
		local := net.ParseIP(s.Laddr.IP) // nil: every address, as some systems say it
		return s.Status == "LISTEN" && int(s.Laddr.Port) == at.Port &&
			(local == nil || local.IsUnspecified() || local.Equal(at.IP))
	})
}

// letGo closes our tab, and the connection.
func (c *chrome) letGo() error {
	lost := c.ctx.Err() != nil
	c.lose(errClosed)
	err := chromedp.Cancel(c.ctx)
	c.end()
	if lost {
		return nil // there may be nobody left to close it
	}
	return err
}

// unreachable is the error of a page that did not open, where it is a browser's of another machine.
func (c *chrome) unreachable(err error, base string) error {
	if !c.attached || !strings.Contains(err.Error(), "net::ERR_") {
		return err
	}
	return fault.Wrap(fault.NoChrome, err, "run llmparity where the browser runs",
		"the browser that was attached to can't reach %s, where the page is: it is on another machine, in a container, or behind a proxy", base)
}
