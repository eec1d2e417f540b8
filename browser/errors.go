package browser

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

var errClosed = errors.New("the browser session is closed")

// lossReported is how long after a call chromedp takes at most to tell that the browser is gone.
const lossReported = time.Second

// errorOf makes an error of a call mean something: the loss of the browser comes first, since it makes every call fail
// in some way; then the caller's own context; then what the page threw.
func (p *Page) errorOf(ctx context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(err, context.Canceled) {
		// Nobody but the browser's end cancels a call of a living caller; the call can learn of it a moment before we
		// do.
		select {
		case <-p.chrome.ctx.Done():
		case <-time.After(lossReported):
			return engine.Fail(record.Crash, "the browser ended unexpectedly: %w", err)
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
	var thrown *chromedp.ExceptionError
	if errors.As(err, &thrown) {
		return p.explain(thrownError(thrown))
	}
	return err
}

// lost says how the page was lost, nil while it is there.
func (p *Page) lost() error { return p.lostBy(nil) }

// lostBy is lost for a call that failed with err, which may know how the browser's process ended.
func (p *Page) lostBy(err error) error {
	if p.chrome.ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(p.chrome.ctx)
	var f *engine.Failure
	if errors.As(cause, &f) || errors.Is(cause, errClosed) {
		return cause
	}
	// chromedp noticed first: it only cancels.
	how := "no exit status is known"
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		how = exit.String()
	}
	return engine.Fail(record.Crash, "the browser ended unexpectedly (%s)", how)
}

// explain adds to an abort what the wasm said before it.
func (p *Page) explain(f *engine.Failure) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.Class != record.Crash || p.abort == "" {
		return f
	}
	if classify(p.abort) == record.OOM {
		f.Class = record.OOM
	}
	return engine.Fail(f.Class, "%w: the model library aborted: %s", f.Err, p.abort)
}

// thrownError is one line of what the page threw: the message without its stack.
func thrownError(e *chromedp.ExceptionError) *engine.Failure {
	text := e.Text
	if o := e.Exception; o != nil && o.Description != "" {
		text = o.Description
	} else if o != nil && len(o.Value) > 0 {
		text = strings.Trim(string(o.Value), `"`) // thrown as a bare string
	}
	text, _, _ = strings.Cut(text, "\n    at ")
	text = fault.OneLine(text)
	return engine.Fail(classify(text), "in the page: %s", text)
}

var (
	outOfMemory = regexp.MustCompile(`(?i)out of memory|out-of-memory|OutOfMemory|array buffer allocation failed|` +
		`invalid array buffer length|(cannot|could not) allocate|allocation failed`)
	deviceLost  = regexp.MustCompile(`(?i)device (was|is) lost|DeviceLost|lost device`)
	fetchFailed = regexp.MustCompile(`(?i)failed to fetch|cannot fetch|'Cache': Request failed|networkerror|net::ERR_|exceeds shard size`)
	// A TVM error can't be thrown through wasm built without exceptions: it aborts.
	wasmAbort = regexp.MustCompile(`^ExitStatus|RuntimeError: (unreachable|memory access|Aborted|table index)|^Aborted\(`)
	tvmError  = regexp.MustCompile(`^\w+Error: `)
)

// classify judges an error message of an engine's script, its wasm or WebGPU.
func classify(text string) record.Class {
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
