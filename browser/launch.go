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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/shirou/gopsutil/v3/disk"

	"llmparity/internal/child"
	"llmparity/internal/engine"
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

	crashed chan struct{}             // closed when the tab has crashed
	told    atomic.Pointer[func(any)] // of the tab's events; nil: nobody
	calls   sync.WaitGroup            // of the start's stages; done when the browser has ended, at the latest
	talk    *talk
}

// Find gives the browser to start; none is where one is attached to.
func (c Config) Find() (string, error) {
	if c.Launch.Attach != "" {
		return "", nil
	}
	return FindChrome(c.Chrome)
}

// launch starts path with a profile of its own, or attaches to the browser that the configuration names. It lives until
// close. An engine.NotStarted is worth another try.
func launch(ctx context.Context, path string, config Config) (*chrome, error) {
	if config.Launch.Attach != "" {
		return attach(ctx, config)
	}
	scratch, err := child.Scratch("chrome")
	if err != nil {
		return nil, err
	}
	if err := socketFits(scratch); err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	c := &chrome{scratch: scratch, eager: true, talk: newTalk(),
		policy: map[string]string{"isolation": record.OfLaunch, "profile": "empty", "window": "none"}}
	options, err := c.options(ctx, path, config)
	if err != nil {
		c.display.close()
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	base, cancel := context.WithCancel(context.Background())
	alloc, endAlloc := chromedp.NewExecAllocator(base, options...)
	tab, endTab := chromedp.NewContext(alloc, chromedp.WithListener(c.overhear()), chromedp.WithLogf(unlogged),
		chromedp.WithErrorf(unlogged), chromedp.WithDebugf(c.talk.note))
	c.ctx, c.lose = context.WithCancelCause(tab)
	c.end = sync.OnceFunc(func() { cancel(); endTab(); endAlloc() })
	if err := c.stages(ctx, tab, config.limits); err != nil {
		var failed *engine.NotStarted
		if errors.As(err, &failed) {
			return nil, c.failed(path, failed)
		}
		return nil, errors.Join(fmt.Errorf("starting %s: %w", path, err), c.close())
	}
	c.talk.over.Store(true)
	if config.Launch.Headed {
		c.watchTab()
	}
	return c, nil
}

// unlogged takes what chromedp would log, which can't be acted upon: an event of a newer Chrome that it doesn't know.
func unlogged(string, ...any) {}

// socketFits says whether the browser can make the socket by which it finds a running one: the system limits the length
// of its path. Chromium's name for the folder is the longest.
func socketFits(scratch string) error {
	socket := filepath.Join(scratch, temporary, "org.chromium.Chromium.XXXXXX", "SingletonSocket")
	// Elsewhere browsers have other places for it.
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; runtime.GOOS == "linux" && len(socket) > most {
		return fault.New(fault.NoChrome, "set TMPDIR to a shorter one",
			"the temporary folder's path is too long for the browser's socket "+
				"(%s would have %d characters, at most %d are possible)", socket, len(socket), most)
	}
	return nil
}

// telling is the line of what a browser wrote that says best why it ended: a FATAL one, else the last ERROR, else the
// last.
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
	flags, err := flagOptions(config.Adapter, config.Launch)
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

// smallSharedMemory tells whether /dev/shm is too small for a browser, as in a container with its default of 64 MB.
func smallSharedMemory() bool {
	shm, err := disk.Usage("/dev/shm")
	return runtime.GOOS == "linux" && (err != nil || shm.Total < 1<<29)
}

// close ends every process of the browser and removes its folders. The profile is worth nothing, so nobody is asked
// politely. A browser that was attached to loses our tab alone.
func (c *chrome) close() error {
	if c.attached {
		return c.letGo()
	}
	c.lose(errClosed)
	c.kill()
	c.end()
	c.calls.Wait()
	var err error
	// The command's process, not chromedp's browser: a launch that is cancelled half-way has the former alone.
	if c.cmd != nil && c.cmd.Process != nil {
		err = awaitGroup(c.cmd.Process)
	}
	c.display.close()
	return errors.Join(err, os.RemoveAll(c.scratch))
}

// members are the living processes of the browser, as far as they can be read.
func (c *chrome) members() []int {
	if c.attached {
		return child.Descendants(c.pid)
	}
	return child.Group(c.pid)
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
		left := child.Group(p.Pid)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the browser's processes %v outlive it", left)
		}
		child.KillGroup(p) // one may have been forked meanwhile
	}
}
