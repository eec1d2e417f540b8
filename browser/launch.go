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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/shirou/gopsutil/v3/disk"

	"llmparity/browser/display"
	"llmparity/browser/find"
	"llmparity/browser/flags"
	"llmparity/internal/host/child"
	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

// chrome is a running browser with one tab of ours.
type chrome struct {
	ctx      context.Context // of the tab; ends with its cause when the browser or the page is lost
	lose     context.CancelCauseFunc
	end      func() // ends the browser or detaches, and waits for chromedp
	cmd      *exec.Cmd
	pid      int // 0: its processes are not visible from here
	attached bool
	eager    bool // has flags.EagerMeasuring
	scratch  string
	display  *display.Display
	version  browser.GetVersionResult
	args     []string // with SCRATCH for the temporary folder, so that they are the same in each launch
	policy   map[string]string
	warnings []record.Warning

	words       *child.Tail // its last output; nil: not started by us
	memoryKills int         // out-of-memory kills by the kernel before the start; -1: unknown

	crashed chan struct{}             // closed when the tab has crashed
	told    atomic.Pointer[func(any)] // receives the tab's events; nil: none
	calls   sync.WaitGroup            // stages of the start, which end with the browser at the latest
}

// Find returns the browser to start; empty if one is attached.
func (c Config) Find() (string, error) {
	if c.Launch.Attach != "" {
		return "", nil
	}
	if c.Adapter == Lavapipe {
		return find.Lavapipe()
	}
	return find.Chrome(c.Chrome)
}

// launch starts path with a new profile, or attaches to a running browser. An engine.NotStarted is worth repeating.
func launch(ctx context.Context, path string, config Config) (*chrome, error) {
	if config.Launch.Attach != "" {
		return attach(ctx, config)
	}
	scratch, err := child.Scratch("chrome")
	if err != nil {
		return nil, fault.WriteError(err, os.TempDir(), "set TMPDIR to another folder")
	}
	c := &chrome{scratch: scratch, eager: true,
		policy: map[string]string{"isolation": record.OfLaunch, "profile": "empty", "window": "none"}}
	options, err := c.options(ctx, path, config)
	if err != nil {
		c.display.Close()
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	base, cancel := context.WithCancel(context.Background())
	alloc, endAlloc := chromedp.NewExecAllocator(base, options...)
	tab, endTab := chromedp.NewContext(alloc, chromedp.WithListener(c.overhear()), chromedp.WithLogf(unlogged),
		chromedp.WithErrorf(unlogged))
	c.ctx, c.lose = context.WithCancelCause(tab)
	c.end = sync.OnceFunc(func() { cancel(); endTab(); endAlloc() })
	if err := c.stages(ctx, tab, config.limits.orDefault()); err != nil {
		return nil, c.failed(path, fmt.Errorf("starting %s: %w", path, err))
	}
	if config.Launch.Headed {
		c.watchTab()
	}
	return c, nil
}

// unlogged discards chromedp's log, such as unknown events of a newer Chrome.
func unlogged(string, ...any) {}

// telling returns the most telling line of a browser's output: the first FATAL one, else the last ERROR, else the
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

// options returns chromedp's defaults, which resemble those of other automation tools, and what measuring needs.
func (c *chrome) options(ctx context.Context, path string, config Config) ([]chromedp.ExecAllocatorOption, error) {
	env := []string{}
	for variable, name := range map[string]string{
		"HOME": "home", "TMPDIR": "tmp", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache",
	} {
		dir := filepath.Join(c.scratch, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making the browser's folders: %w", err)
		}
		env = append(env, variable+"="+dir)
	}
	given, err := flags.Options(config.Launch.Flags)
	if err != nil {
		return nil, err
	}
	shm, err := disk.Usage("/dev/shm")
	c.words, c.memoryKills = &child.Tail{Max: wordsKept}, machine.MemoryKills()
	o := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		// chromedp's own temporary profile would stay if we were killed; ours is removed at the next start.
		chromedp.UserDataDir(filepath.Join(c.scratch, "profile")),
		chromedp.Env(env...),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			child.Own(cmd)
			c.cmd = cmd
			for _, a := range cmd.Args[1:] {
				c.args = append(c.args, strings.ReplaceAll(a, c.scratch, "SCRATCH"))
			}
		}),
		chromedp.CombinedOutput(c.words),
		chromedp.Flag("headless", "new"),
		chromedp.Flag("enable-precise-memory-info", true),
		chromedp.Flag("enable-unsafe-webgpu", true),
		// Browsers use shared memory in /dev/shm; files would be other memory. A small /dev/shm crashes them, such as a
		// container's default of 64 MB.
		chromedp.Flag("disable-dev-shm-usage", runtime.GOOS == "linux" && (err != nil || shm.Total < 1<<29)),
		chromedp.Flag("disable-component-update", true),
	)
	if config.Launch.Headed {
		screen, d, err := display.Env(ctx, c.scratch)
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
	return slices.Concat(o, config.Adapter.flags(), given), nil
}

// close kills every process of the browser, since the profile need not be saved, and removes its folders. An attached
// browser only loses our tab.
func (c *chrome) close() error {
	if c.attached {
		return c.letGo()
	}
	c.lose(errClosed)
	c.find()
	if p, err := os.FindProcess(c.pid); err == nil && c.pid != 0 {
		child.KillGroup(p)
	}
	c.end()
	c.calls.Wait()
	var err error
	// Not chromedp's browser, which does not exist yet if a launch is cancelled half-way.
	if c.cmd != nil && c.cmd.Process != nil {
		err = awaitGroup(c.cmd.Process)
	}
	c.display.Close()
	return errors.Join(err, os.RemoveAll(c.scratch))
}

// members returns the browser's visible processes.
func (c *chrome) members() []int {
	if c.attached {
		return child.Descendants(c.pid)
	}
	return child.Group(c.pid)
}

// awaitGroup waits for the browser's processes to end.
func awaitGroup(p *os.Process) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		left := child.Group(p.Pid)
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the browser's processes %v are still running", left)
		}
		child.KillGroup(p) // one may just have been forked
	}
}
