package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/chromedp"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/kit/fault"
)

// limits are the time limits of a start.
type limits struct {
	answer time.Duration // until the browser's first answer; 0: 1 min
	tab    time.Duration // then until its first tab answers: 0.2 s, or 6 s at a fifth of a CPU; 0: 15 s
	page   time.Duration // then until our page is ready; 0: 1 min
}

func (l *limits) orDefault() limits {
	if l == nil {
		l = &limits{}
	}
	return limits{cmp.Or(l.answer, time.Minute), cmp.Or(l.tab, 15*time.Second), cmp.Or(l.page, time.Minute)}
}

// overhear returns a listener for the tab's events. It notices a crash, after which calls to the tab wait for ever.
func (c *chrome) overhear() func(any) {
	c.crashed = make(chan struct{})
	crash := sync.OnceFunc(func() { close(c.crashed) })
	return func(ev any) {
		if _, is := ev.(*inspector.EventTargetCrashed); is {
			crash()
		}
		if told := c.told.Load(); told != nil {
			(*told)(ev)
		}
	}
}

// listen sets the receiver of the tab's events, called on the goroutine that reads them. It also gets an earlier
// crash.
func (c *chrome) listen(tell func(any)) {
	c.told.Store(&tell)
	select {
	case <-c.crashed:
		tell(&inspector.EventTargetCrashed{})
	default:
	}
}

// stage waits for a call that chromedp may never return from, except when the browser ends. who is named if it does
// not answer.
func (c *chrome) stage(ctx context.Context, limit time.Duration, who string, call func() error) error {
	done := make(chan error, 1)
	c.calls.Go(func() { done <- call() })
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		if err == nil || ctx.Err() != nil {
			return err
		}
		words := telling(strings.TrimPrefix(err.Error(), "chrome failed to start:"))
		return &engine.NotStarted{What: who + " did not answer: " + cmp.Or(words, "it ended"), Err: err}
	case <-c.crashed:
		return &engine.NotStarted{What: who + " crashed before answering", Words: c.telling()}
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return &engine.NotStarted{What: fmt.Sprintf("%s did not answer within %g s", who, limit.Seconds()),
			Words: c.telling()}
	}
}

// stages waits until the browser answers, then its first tab.
func (c *chrome) stages(ctx context.Context, tab context.Context, l limits) error {
	err := c.stage(ctx, l.answer, "Chrome", func() (err error) {
		c.version, err = chromedp.CallBrowser(tab, browser.GetVersion, cdp.Empty{})
		return err
	})
	if err != nil {
		return err
	}
	c.pid = chromedp.FromContext(tab).Browser.Process().Pid
	return c.stage(ctx, l.tab, "Chrome's first tab", func() error { return chromedp.Do(tab) })
}

// printed returns the last output of a browser that we started.
func (c *chrome) printed() string {
	if c.words == nil {
		return ""
	}
	return strings.Join(c.words.Lines(wordsKept), "\n")
}

func (c *chrome) telling() string { return telling(c.printed()) }

// find finds the processes of a browser that has not answered.
func (c *chrome) find() {
	if c.pid == 0 {
		c.pid = child.GroupNaming(c.scratch)
	}
}

// failed ends a browser that did not become ready, with a report about it.
func (c *chrome) failed(path string, err error) error {
	failed, ok := errors.AsType[*engine.NotStarted](err)
	if c.diskIsFull() && !errors.Is(err, context.Canceled) { // before its folders are removed
		err = c.onFullDisk(errors.New(fault.What(err)))
	} else if ok {
		c.find()
		failed.Report = fmt.Sprintf("Processes\n%s\nOutput\n%s\n", child.Describe(child.Group(c.pid)), c.printed())
		failed.Kind, failed.Do = fault.NoChrome, "start "+path+" by hand to see why"
		err = failed
		if c.cmd == nil || c.cmd.Process == nil { // repeating would not help
			err = fault.New(failed.Kind, failed.Do, "%s does not start: %s", path, failed.What)
		}
	}
	if closing := c.close(); closing != nil {
		return fmt.Errorf("%w (and closing the browser: %v)", err, closing)
	}
	return err
}
