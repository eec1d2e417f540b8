package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"llmparity/internal/child"
	"llmparity/internal/fault"
)

// ChromeVariable names the environment variable that says which Chrome to start.
const ChromeVariable = "LLMPARITY_CHROME"

// FindChrome gives the browser to start: path where it is not empty, else what $LLMPARITY_CHROME names, else the first of
// the usual names on PATH.
func FindChrome(path string) (string, error) {
	const get = "install Chromium or Chrome (Debian: apt install chromium), or name one with --chrome or $" + ChromeVariable
	for _, given := range []string{path, os.Getenv(ChromeVariable)} {
		if given == "" {
			continue
		}
		found, err := exec.LookPath(given)
		if err != nil {
			return "", fault.Wrap(fault.NoChrome, err, get, "the browser %s can't be started", given)
		}
		return found, nil
	}
	for _, name := range []string{"google-chrome", "google-chrome-stable", "chromium", "chromium-browser", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", fault.New(fault.NoChrome, get, "no Chrome or Chromium is on PATH")
}

// chrome is a running browser with one tab.
type chrome struct {
	ctx     context.Context // of the tab; ends with its cause when the browser or the page is lost
	lose    context.CancelCauseFunc
	end     func() // ends the browser and waits for chromedp
	cmd     *exec.Cmd
	pid     int
	scratch string
	version browser.GetVersionResult
	args    []string // the same for every launch: the temporary folder is called SCRATCH
}

// launch starts path with a profile of its own. The browser lives until close. listen gets the tab's events, on the goroutine
// that reads them.
func launch(ctx context.Context, path string, adapter []string, listen func(any)) (_ *chrome, err error) {
	scratch, err := child.Scratch("chrome")
	if err != nil {
		return nil, err
	}
	if err := socketFits(scratch); err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	c := &chrome{scratch: scratch}
	options, err := c.options(path, adapter)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	base, cancel := context.WithCancel(context.Background())
	alloc, endAlloc := chromedp.NewExecAllocator(base, options...)
	// What chromedp would log can't be acted upon: an event of a newer Chrome that it doesn't know.
	quiet := func(string, ...any) {}
	tab, endTab := chromedp.NewContext(alloc, chromedp.WithListener(listen), chromedp.WithLogf(quiet), chromedp.WithErrorf(quiet))
	c.ctx, c.lose = context.WithCancelCause(tab)
	c.end = sync.OnceFunc(func() { cancel(); endTab(); endAlloc() })
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()

	defer context.AfterFunc(ctx, cancel)()
	if err := chromedp.Do(tab); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("starting %s: %w", path, ctx.Err())
		}
		return nil, &fault.Error{Kind: fault.NoChrome, Err: err, Do: "start it by hand to see why",
			What: fmt.Sprintf("%s does not start: %s", path, telling(err.Error()))}
	}
	c.pid = chromedp.FromContext(tab).Browser.Process().Pid
	if c.version, err = chromedp.CallBrowser(tab, browser.GetVersion, cdp.Empty{}); err != nil {
		return nil, fmt.Errorf("asking the browser for its version: %w", err)
	}
	return c, nil
}

// socketFits says whether the browser can make the socket by which it finds a running one: the system limits the length of its path.
// Chromium's name for the folder is the longest.
func socketFits(scratch string) error {
	socket := filepath.Join(scratch, temporary, "org.chromium.Chromium.XXXXXX", "SingletonSocket")
	// Elsewhere browsers have other places for it.
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; runtime.GOOS == "linux" && len(socket) > most {
		return fault.New(fault.NoChrome, "set TMPDIR to a shorter one", "the temporary folder's path is too long for the browser's socket "+
			"(%s would have %d characters, at most %d are possible)", socket, len(socket), most)
	}
	return nil
}

// telling is the line of what a browser wrote that says best why it ended: a FATAL one, else the last ERROR, else the last.
func telling(text string) string {
	var fatal, failed, last string
	for line := range strings.Lines(text) {
		line = fault.OneLine(line)
		switch {
		case line == "":
			continue
		case fatal == "" && strings.Contains(line, ":FATAL:"):
			fatal = line
		case strings.Contains(line, ":ERROR:"):
			failed = line
		}
		last = line
	}
	line := []rune(cmp.Or(fatal, failed, last))
	if len(line) > 200 {
		line = append(line[:199], '…')
	}
	return string(line)
}

// unwanted are features of the browser that take memory, or processes, without the page's doing: spare renderers, pages that could
// be gone back to, the address bar's own page. The first two are chromedp's.
var unwanted = []string{"Translate", "BlinkGenPropertyTrees", "SpareRendererForSitePerProcess", "BackForwardCache",
	"WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "OptimizationHints", "MediaRouter"}

// temporary is the browser's own folder for temporary files.
const temporary = "tmp"

// options are chromedp's defaults, which follow those of other automation tools, and what measuring needs.
func (c *chrome) options(path string, adapter []string) ([]chromedp.ExecAllocatorOption, error) {
	env := []string{}
	for variable, name := range map[string]string{
		"HOME": "home", "TMPDIR": temporary, "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache",
	} {
		dir := filepath.Join(c.scratch, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making the browser's folders: %w", err)
		}
		env = append(env, variable+"="+dir)
	}
	o := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		// Not chromedp's own temporary profile: it would stay if we were killed, ours is swept at the next start.
		chromedp.UserDataDir(filepath.Join(c.scratch, "profile")),
		chromedp.Env(env...),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			child.Own(cmd)
			c.cmd = cmd
			for _, a := range cmd.Args[1:] {
				c.args = append(c.args, strings.ReplaceAll(a, c.scratch, "SCRATCH"))
			}
		}),
		chromedp.Flag("headless", "new"),
		chromedp.Flag("enable-precise-memory-info", true),
		chromedp.Flag("enable-unsafe-webgpu", true),
		chromedp.Flag("enable-blink-features", eagerMeasuring),
		// Shared memory in /dev/shm is what a browser does; in files it would be other memory. Small ones crash it.
		chromedp.Flag("disable-dev-shm-usage", smallSharedMemory()),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-features", strings.Join(unwanted, ",")),
		// The trace that finds the page's process would leave a service's process behind.
		chromedp.Flag("enable-features", "NetworkService,NetworkServiceInProcess,TracingServiceInProcess"),
	)
	for _, flag := range adapter {
		name, value := cutFlag(flag)
		o = append(o, chromedp.Flag(name, value))
	}
	return o, nil
}

// close ends every process of the browser and removes its folders. The profile is worth nothing, so nobody is asked politely.
func (c *chrome) close() error {
	c.lose(errClosed)
	// The command's process, not chromedp's browser: a launch that is cancelled half-way has the former alone.
	started := c.cmd != nil && c.cmd.Process != nil
	if started {
		child.KillGroup(c.cmd.Process)
	}
	c.end()
	var err error
	if started {
		err = awaitGroup(c.cmd.Process)
	}
	return errors.Join(err, os.RemoveAll(c.scratch))
}

// awaitGroup waits for the browser's children, which end in their own time.
func awaitGroup(p *os.Process) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		left := group(p.Pid)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the browser's processes %v outlive it", left)
		}
		child.KillGroup(p) // one may have been forked meanwhile
	}
}
