package browser

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/chromedp"
	"github.com/shirou/gopsutil/v3/disk"

	"llmparity/internal/engine"
	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
)

var errClosed = errors.New("the browser session is closed")

// lossReported is how long the report may take that the browser or the page is gone, with what it printed last.
const lossReported = 3 * time.Second

// errorOf returns the meaning of a failed call.
func (p *Page) errorOf(ctx context.Context, err error) error {
	return p.chrome.onFullDisk(p.meaningOf(ctx, err))
}

// leastFree is the space on the disk of the profile below which the browser's storage fails.
const leastFree = 1 << 20

// onFullDisk makes an error a full disk's if the disk of the browser's profile is full. Browsers report that in many
// ways, of which none names the disk: "UnknownError: Failed to execute 'open' on 'CacheStorage'".
func (c *chrome) onFullDisk(err error) error {
	vague := []record.Class{record.Other, record.Download, record.Crash, record.Start}
	_, known := errors.AsType[*fault.Error](err)
	if err == nil || known || !slices.Contains(vague, engine.ClassOf(err)) || !c.diskIsFull() {
		return err
	}
	return fault.Wrap(fault.DiskFull, err, "free some space, or set TMPDIR to a folder on another disk",
		"the disk of the browser's profile in %s is full", filepath.Dir(c.scratch))
}

func (c *chrome) diskIsFull() bool {
	if c.scratch == "" || errors.Is(context.Cause(c.ctx), errClosed) { // not ours, or removed
		return false
	}
	u, err := disk.Usage(c.scratch)
	return err == nil && u.Free < leastFree
}

// meaningOf returns the meaning of a failed call: first the loss of the browser, which makes all calls fail, then the
// caller's context, then what the page threw.
func (p *Page) meaningOf(ctx context.Context, err error) error {
	said, _ := errors.AsType[*cdproto.Error](err)
	switch { // A call may notice the loss before its report comes.
	case ctx.Err() != nil:
	case errors.Is(err, context.Canceled): // only the end of the browser cancels a call whose caller is still waiting
		if !p.lossComes() {
			return engine.Fail(record.Crash, "the browser ended unexpectedly: %w", err)
		}
	case said != nil && strings.Contains(said.Message, "Target crashed"):
		if !p.lossComes() {
			return engine.Fail(record.Crash, "the page's renderer process ended: %w", err)
		}
	}
	if errors.Is(err, chromedp.ErrTargetDetached) {
		p.ended()
	}
	if lost := p.lostBy(err); lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if thrown, ok := errors.AsType[*chromedp.ExceptionError](err); ok {
		return p.explain(p.thrown(thrown))
	}
	return err
}

// lossComes waits for the report that the page is lost; false: there is none.
func (p *Page) lossComes() bool {
	select {
	case <-p.chrome.ctx.Done():
		return true
	case <-time.After(lossReported):
		return p.chrome.ctx.Err() != nil // on a busy machine both may have come
	}
}

// lost returns how the page was lost; nil if it was not.
func (p *Page) lost() error { return p.lostBy(nil) }

// lostBy is lost for a call that failed with err, which may contain the browser's exit status.
func (p *Page) lostBy(err error) error {
	if p.chrome.ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(p.chrome.ctx)
	if _, known := errors.AsType[*engine.Failure](cause); known || errors.Is(cause, errClosed) {
		return cause
	}
	// chromedp noticed first, and only cancels.
	how := "exit status unknown"
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		how = exit.String()
	}
	return engine.Fail(record.Crash, "the browser ended unexpectedly (%s)", how)
}

// explain adds the wasm's last message to an abort.
func (p *Page) explain(f *engine.Failure) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.Class != record.Crash || p.abort == "" {
		return f
	}
	if p.classify(p.abort) == record.OOM {
		f.Class = record.OOM
	}
	return engine.Fail(f.Class, "%w: the engine's wasm aborted: %s", f.Err, p.abort)
}

// thrown returns the message of what the page threw, on one line and without the stack.
func (p *Page) thrown(e *chromedp.ExceptionError) *engine.Failure {
	text := e.Text
	if o := e.Exception; o != nil && o.Description != "" {
		text = o.Description
	} else if o != nil && len(o.Value) > 0 {
		text = strings.Trim(string(o.Value), `"`) // a bare string was thrown
	}
	text, _, _ = strings.Cut(text, "\n    at ")
	text = fault.OneLine(text)
	return engine.Fail(p.classify(text), "in the page: %s", text)
}

var (
	outOfMemory = regexp.MustCompile(`(?i)out of memory|out-of-memory|OutOfMemory|array buffer allocation failed|` +
		`invalid array buffer length|(cannot|could not) allocate|allocation failed`)
	deviceLost  = regexp.MustCompile(`(?i)device (was|is) lost|DeviceLost|lost device`)
	fetchFailed = regexp.MustCompile(`(?i)failed to fetch|networkerror|network error|net::ERR_`)
	// Without wasm exceptions an error in a wasm cannot be thrown, but aborts.
	wasmAbort  = regexp.MustCompile(`^ExitStatus|RuntimeError: (unreachable|memory access|Aborted|table index)|^Aborted\(`)
	namedError = regexp.MustCompile(`^\w+Error: `)
)

// classify classifies an error message of the engine's script, its wasm or WebGPU.
func (p *Page) classify(text string) record.Class {
	if own := p.site.Classify; own != nil {
		if class := own(text); class != "" {
			return class
		}
	}
	switch {
	case outOfMemory.MatchString(text):
		return record.OOM
	case deviceLost.MatchString(text):
		return record.DeviceLost
	case fetchFailed.MatchString(text):
		return record.Download
	case wasmAbort.MatchString(text):
		return record.Crash
	}
	return record.Other
}

// wordsKept is how much of the browser's output is kept.
const wordsKept = 16 << 10

// wordsCome is how long output of a process may arrive after the browser has reported the end of the process.
const wordsCome = 500 * time.Millisecond

// heapFull matches what V8 prints before it ends a renderer or worker whose heap is full; the browser reports a crash.
var heapFull = regexp.MustCompile(`V8 javascript OOM \([^)]*\)|Last few GCs|(?i:out of memory)`)

// endedFor returns whether a process ended because memory ran out, and how that is known.
func (c *chrome) endedFor(status string) (class record.Class, how string) {
	if strings.Contains(strings.ToLower(status), "oom") {
		return record.OOM, status // reported by the browser, on some systems
	}
	if kills := machine.MemoryKills(); status == killed && c.memoryKills >= 0 && kills > c.memoryKills {
		return record.OOM, "the kernel killed a process because memory ran out"
	}
	if status == killed || c.words == nil {
		return record.Crash, status
	}
	const pause = 5 * time.Millisecond
	for range wordsCome / pause { // counted, because on a busy machine a deadline may pass before the first look
		if slices.ContainsFunc(c.words.Lines(wordsKept), heapFull.MatchString) {
			return record.OOM, status + "; the browser printed that memory ran out"
		}
		time.Sleep(pause)
	}
	return record.Crash, status
}

// killed is what the browser reports for a renderer that got SIGKILL.
const killed = "killed"

// crashed reports that the renderer ended, without blocking the browser's events, after waiting for output that may
// say why. The browser sends two events; the one that does not know the reason waits so that the other comes first.
func (p *Page) crashed(status string, patience time.Duration) {
	go func() {
		select {
		case <-p.chrome.ctx.Done():
			return
		case <-time.After(patience):
		}
		class, how := p.chrome.endedFor(status)
		p.chrome.lose(engine.Fail(class, "the page's renderer process ended (%s)", how))
	}()
}

// ended is called if a call's target has gone, which we do not cause ourselves.
func (p *Page) ended() {
	if p.chrome.ctx.Err() != nil {
		return
	}
	if p.isolate.worker == "" {
		p.chrome.lose(engine.Fail(record.Crash, "the page was closed"))
		return
	}
	class, how := p.chrome.endedFor("it is gone")
	p.chrome.lose(engine.Fail(class, "the page's worker ended unexpectedly (%s)", how))
}
