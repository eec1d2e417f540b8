// Package chrome drives Chrome and its relatives through DevTools: it starts one or attaches to a running one, opens a
// page, and reads what DevTools knows of its memory. A Sheet draws pictures for reports.
//
// Limits: it does not see what a GPU driver allocates for WebGPU. Outside Linux it only knows the processes that the
// browser names.
package chrome

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/shirou/gopsutil/v3/disk"

	"llmparity/browser/driver"
	"llmparity/browser/find"
	"llmparity/browser/flags"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
)

// Tab is a running browser with one tab of ours.
type Tab struct {
	*driver.Process
	ID    target.ID
	end   func() // ends the browser or detaches, and waits for chromedp
	cmd   *exec.Cmd
	eager bool // has flags.EagerMeasuring

	crashed chan struct{} // closed when the tab has crashed
	isolate isolate       // where the engine runs

	base     string                          // of the page's files
	renderer atomic.Int64                    // the page's process
	told     atomic.Pointer[driver.Listener] // hears the page's events; nil: nobody
}

var _ driver.Tab = (*Tab)(nil)

// Check refuses contradictory settings; chosen is the browser that the user chose.
func Check(o driver.Options, chosen string) error {
	l := o.Launch
	if l.Attach != "" {
		if _, err := find.Address(l.Attach); err != nil {
			return err
		}
		for _, f := range []struct {
			name  string
			given bool
		}{{"chrome", chosen != ""}, {"headed", l.Headed}, {"chrome-flag", len(l.Flags) > 0}} {
			if f.given {
				return fault.New(fault.Usage, "give only one",
					"--%s applies to a browser that llmparity starts, --attach to one that is running", f.name)
			}
		}
	}
	return flags.Check(l.Flags)
}

// Launch starts path with a new profile, or attaches to a running browser. An engine.NotStarted is worth repeating.
func Launch(ctx context.Context, path string, o driver.Options) (driver.Tab, error) {
	t, err := launch(ctx, path, o)
	if err != nil {
		return nil, err // not a nil *tab in an interface
	}
	return t, nil
}

func launch(ctx context.Context, path string, o driver.Options) (*Tab, error) {
	if o.Attach != "" {
		return attach(ctx, o)
	}
	p, err := driver.Started("chrome")
	if err != nil {
		return nil, err
	}
	p.Stores = stores
	t := &Tab{Process: p, eager: true}
	options, err := t.options(ctx, path, o)
	if err != nil {
		p.Display.Close()
		return nil, errors.Join(err, os.RemoveAll(p.Scratch))
	}
	base, cancel := context.WithCancel(context.Background())
	alloc, endAlloc := chromedp.NewExecAllocator(base, options...)
	first, endTab := chromedp.NewContext(alloc, chromedp.WithListener(t.overhear()), chromedp.WithLogf(unlogged),
		chromedp.WithErrorf(unlogged))
	t.lasts(first)
	t.end = sync.OnceFunc(func() { cancel(); endTab(); endAlloc() })
	if err := t.stages(ctx, first, o.Limits.OrDefault()); err != nil {
		return nil, t.Failed(path, fmt.Errorf("starting %s: %w", path, err))
	}
	t.ID = chromedp.FromContext(first).Target.TargetID
	if o.Headed {
		t.watchTab()
	}
	return t, nil
}

// lasts makes the tab last as long as chromedp's.
func (t *Tab) lasts(first context.Context) {
	t.Ctx, t.End = context.WithCancelCause(first)
	t.isolate.ctx = t.Ctx
}

// unlogged discards chromedp's log, such as unknown events of a newer Chrome.
func unlogged(string, ...any) {}

// options returns chromedp's defaults, which resemble those of other automation tools, and what measuring needs.
func (t *Tab) options(ctx context.Context, path string, o driver.Options) ([]chromedp.ExecAllocatorOption, error) {
	env, err := t.Env(ctx, o.Headed)
	if err == nil {
		err = t.Restore(o)
	}
	if err != nil {
		return nil, err
	}
	given, err := flags.Options(o.Flags)
	if err != nil {
		return nil, err
	}
	shm, err := disk.Usage("/dev/shm")
	all := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		// chromedp's own temporary profile would stay if we were killed; ours is removed at the next start.
		chromedp.UserDataDir(t.Folder()),
		chromedp.Env(env...),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			child.Own(cmd)
			t.cmd = cmd
			t.Ran(cmd)
		}),
		chromedp.CombinedOutput(t.Words),
		chromedp.Flag("headless", headless(o)),
		chromedp.Flag("enable-precise-memory-info", true),
		chromedp.Flag("enable-unsafe-webgpu", true),
		chromedp.Flag("enable-webgpu-developer-features", true), // an adapter tells its backend, type and driver
		// Browsers use shared memory in /dev/shm; files would be other memory. A small /dev/shm crashes them, such as a
		// container's default of 64 MB.
		chromedp.Flag("disable-dev-shm-usage", runtime.GOOS == "linux" && (err != nil || shm.Total < 1<<29)),
		chromedp.Flag("disable-component-update", true),
	)
	return slices.Concat(all, adapterFlags(o.Adapter), given), nil
}

// headless is the value of the flag.
func headless(o driver.Options) any {
	if o.Headed {
		return false
	}
	return "new"
}

// adapterFlags make the browser offer the adapter.
func adapterFlags(a driver.Adapter) (out []chromedp.ExecAllocatorOption) {
	if a.Software() {
		out = append(out, chromedp.Flag("use-webgpu-adapter", "swiftshader"))
	}
	return out
}

// Close kills every process of the browser, since the profile need not be saved, and removes its folders. An attached
// browser only loses our tab.
func (t *Tab) Close() error {
	if t.About.Attached {
		return t.letGo()
	}
	t.Lose(driver.ErrClosed)
	t.Find()
	if p, err := os.FindProcess(t.About.PID); err == nil && t.About.PID != 0 {
		child.KillGroup(p)
	}
	t.end()
	t.StagesEnded()
	var err error
	// Not chromedp's browser, which does not exist yet if a launch is cancelled half-way.
	if t.cmd != nil && t.cmd.Process != nil {
		err = driver.AwaitGroup(t.cmd.Process)
	}
	t.Display.Close()
	return errors.Join(err, os.RemoveAll(t.Scratch))
}

// Members returns the browser's visible processes.
func (t *Tab) Members() []int {
	if t.About.Attached {
		return child.Descendants(t.About.PID)
	}
	return child.Group(t.About.PID)
}
