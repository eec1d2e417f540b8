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
	"llmparity/internal/record"
	"llmparity/internal/sample"
	"llmparity/internal/sample/proc"
)

// chrome is a running browser with one tab of ours.
type chrome struct {
	ctx      context.Context // of the tab; ends with its cause when the browser or the page is lost
	lose     context.CancelCauseFunc
	end      func() // ends the browser, or lets go of it, and waits for chromedp
	cmd      *exec.Cmd
	pid      int // 0: of a browser whose processes can't be read from here
	attached bool
	eager    bool // has eagerMeasuring
	scratch  string
	display  *display
	version  browser.GetVersionResult
	args     []string // the same for every launch: the temporary folder is called SCRATCH
	policy   map[string]string
	warnings []record.Warning

	words       *child.Tail // what it printed last; nil: it is not ours
	memoryKills int         // of the kernel's before it was started or attached to; -1: not known
}

// speaks is how long a browser may take from its start, or from our call to it, until it has answered what is asked first.
const speaks = time.Minute

// find gives the browser to start; none is where one is attached to.
func (c Config) find() (string, error) {
	if c.Launch.Attach != "" {
		return "", nil
	}
	return FindChrome(c.Chrome)
}

// launch starts path with a profile of its own, or attaches to the browser that the configuration names. It lives until close.
// listen gets the tab's events, on the goroutine that reads them.
func launch(ctx context.Context, path string, config Config, listen func(any)) (*chrome, error) {
	if config.Launch.Attach != "" {
		return attach(ctx, config, listen)
	}
	return start(ctx, path, config, listen)
}

func start(ctx context.Context, path string, config Config, listen func(any)) (_ *chrome, err error) {
	scratch, err := child.Scratch("chrome")
	if err != nil {
		return nil, err
	}
	if err := socketFits(scratch); err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	c := &chrome{scratch: scratch, eager: true, policy: map[string]string{"isolation": record.OfLaunch, "profile": "empty", "window": "none"}}
	options, err := c.options(ctx, path, config)
	if err != nil {
		c.display.close()
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

	limit := cmp.Or(config.speaks, speaks)
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	defer context.AfterFunc(limited, cancel)()
	if err = chromedp.Do(tab); err == nil {
		c.pid = chromedp.FromContext(tab).Browser.Process().Pid
		c.version, err = chromedp.CallBrowser(tab, browser.GetVersion, cdp.Empty{})
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, fmt.Errorf("starting %s: %w", path, ctx.Err())
	case limited.Err() != nil:
		return nil, fault.Wrap(fault.NoChrome, err, "start it by hand to see why", "%s starts and says nothing for %v", path, limit)
	default:
		return nil, &fault.Error{Kind: fault.NoChrome, Err: err, Do: "start it by hand to see why",
			What: fmt.Sprintf("%s does not start: %s", path, telling(err.Error()))}
	}
	if config.Launch.Headed {
		c.watchTab()
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

// temporary is the browser's own folder for temporary files.
const temporary = "tmp"

// options are chromedp's defaults, which follow those of other automation tools, and what measuring needs.
func (c *chrome) options(ctx context.Context, path string, config Config) ([]chromedp.ExecAllocatorOption, error) {
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
	flags, err := flagOptions(config.Adapter.flags(), config.Launch)
	if err != nil {
		return nil, err
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
		chromedp.CombinedOutput(c.listenToWords()),
		chromedp.Flag("headless", "new"),
		chromedp.Flag("enable-precise-memory-info", true),
		chromedp.Flag("enable-unsafe-webgpu", true),
		// Shared memory in /dev/shm is what a browser does; in files it would be other memory. Small ones crash it.
		chromedp.Flag("disable-dev-shm-usage", smallSharedMemory()),
		chromedp.Flag("disable-component-update", true),
	)
	if config.Launch.Headed {
		screen, d, err := displayed(ctx, c.scratch)
		if err != nil {
			return nil, err
		}
		c.display = d
		c.policy["window"] = "on a display"
		if d != nil {
			c.policy["window"] = "on a private display"
		}
		o = append(o, chromedp.Flag("headless", false), chromedp.Env(screen...))
	}
	return append(o, flags...), nil
}

// close ends every process of the browser and removes its folders. The profile is worth nothing, so nobody is asked politely. A
// browser that was attached to loses our tab alone.
func (c *chrome) close() error {
	if c.attached {
		return c.letGo()
	}
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
	c.display.close()
	return errors.Join(err, os.RemoveAll(c.scratch))
}

// members are the living processes of the browser, as far as they can be read.
func (c *chrome) members() []int {
	if c.attached {
		return descendants(c.pid)
	}
	return group(c.pid)
}

// sources samples a process of the browser. In one that we did not start nothing is reset.
func (c *chrome) sources(pid int, role string) ([]sample.Source, error) {
	if c.attached {
		return proc.Sources(pid, role)
	}
	return proc.SourcesOfOurs(pid, role)
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
