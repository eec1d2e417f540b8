package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// limits are how long a start may take: its two stages, and then our page.
type limits struct {
	answer time.Duration // from the browser's start, or from our call to it, to its first answer; 0: a minute
	// from there to the first tab's answer; 0: 15 s, of which it takes 0.2 s, or 6 s at a fifth of a processor
	tab  time.Duration
	page time.Duration // from there until our page is ready; 0: a minute
}

func (l limits) orDefault() limits {
	return limits{cmp.Or(l.answer, time.Minute), cmp.Or(l.tab, 15*time.Second), cmp.Or(l.page, time.Minute)}
}

// Silent is told of starts that fail where nothing is recorded.
type Silent struct{}

func (Silent) Log(string) io.WriteCloser { return unwritten{io.Discard} }
func (Silent) Warn(record.Warning)       {}

type unwritten struct{ io.Writer }

func (unwritten) Close() error { return nil }

// overhear gives what sees the tab's events, and notices that it crashes: calls to it then wait for ever.
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

// listen has the tab's events told from now on, on the goroutine that reads them, and a crash that came before.
func (c *chrome) listen(tell func(any)) {
	c.told.Store(&tell)
	select {
	case <-c.crashed:
		tell(&inspector.EventTargetCrashed{})
	default:
	}
}

// stage waits for a call that chromedp may never return from: only the browser's end ends it then. Who has not answered
// is named.
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
		return &engine.NotStarted{What: who + " gave no answer: " + cmp.Or(words, "it ended"), Err: err}
	case <-c.crashed:
		return &engine.NotStarted{What: who + " crashed before it answered", Words: c.telling()}
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return &engine.NotStarted{What: fmt.Sprintf("%s did not answer within %g s", who, limit.Seconds()),
			Words: c.telling()}
	}
}

// stages starts the browser: it answers, then its first tab does.
func (c *chrome) stages(ctx context.Context, tab context.Context, l limits) error {
	l = l.orDefault()
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

// printed is what the browser printed last; nothing of one that is not ours.
func (c *chrome) printed() string {
	if c.words == nil {
		return ""
	}
	return strings.Join(c.words.Lines(wordsKept), "\n")
}

func (c *chrome) telling() string { return telling(c.printed()) }

// report tells what may say why a browser does not start.
func (c *chrome) report() string {
	var b strings.Builder
	if c.pid != 0 { // it has answered
		fmt.Fprintf(&b, "Targets\n%s\n\n", c.targets())
	}
	c.find()
	fmt.Fprintf(&b, "Processes\n%s\nLast messages\n%s\n\nOutput\n%s\n", child.Describe(child.Group(c.pid)),
		strings.Join(c.talk.last.Lines(wordsKept), "\n"), c.printed())
	return b.String()
}

// targets asks a browser that has answered before what it has.
func (c *chrome) targets() string {
	ctx, cancel := context.WithTimeout(c.ctx, time.Second)
	defer cancel()
	r, err := chromedp.CallBrowser(ctx, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, t := range r.TargetInfos {
		lines = append(lines, fmt.Sprintf("%s %s %q, attached: %t", t.TargetID, t.Type, t.URL, t.Attached))
	}
	return strings.Join(lines, "\n")
}

// kill ends the processes at once, as far as the browser is known; close waits for them.
func (c *chrome) kill() {
	c.find()
	if p, err := os.FindProcess(c.pid); err == nil && c.pid != 0 {
		child.KillGroup(p)
	}
}

// find finds the processes of a browser that has not answered.
func (c *chrome) find() {
	if c.pid == 0 {
		c.pid = child.GroupNaming(c.scratch)
	}
}

// failed ends a browser that did not become ready, after a look at it.
func (c *chrome) failed(path string, failed *engine.NotStarted) error {
	failed.Report, failed.Kind, failed.Do = c.report(), fault.NoChrome, "start "+path+" by hand to see why"
	closing := c.close()
	if c.cmd == nil || c.cmd.Process == nil { // no other start would do better
		return errors.Join(fault.New(failed.Kind, failed.Do, "%s does not start: %s", path, failed.What), closing)
	}
	return errors.Join(failed, closing)
}

// talk keeps the last messages between us and a browser, for as long as it starts.
type talk struct {
	begin time.Time
	last  child.Tail
	over  atomic.Bool
}

func newTalk() *talk { return &talk{begin: time.Now(), last: child.Tail{Max: 16 << 10}} }

// note has the signature that chromedp wants.
func (t *talk) note(format string, args ...any) {
	const length = 600
	if !t.over.Load() {
		text := fmt.Sprintf(format, args...)
		fmt.Fprintf(&t.last, "%.3f s %s\n", time.Since(t.begin).Seconds(), text[:min(len(text), length)])
	}
}
