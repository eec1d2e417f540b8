// Package driver is what a page needs of a browser, whichever it is: a Tab that opens a page, evaluates expressions in
// it, passes on what it reports, and knows the browser's processes. Packages chrome and firefox have one each.
// What a browser does not report is absent, never zero.
//
// Process is what they share: a program with a temporary profile, which ends with everything that it started.
package driver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"llmparity/browser/serve"
	"llmparity/internal/engine"
	"llmparity/internal/host/sample"
)

// Binding is the function with which an engine's script reports events during a call.
const Binding = "llmparityEvent"

// Thread says where in the page the engine runs.
type Thread string

// Possible threads.
const (
	PageThread   Thread = "page"   // the page's main thread
	WorkerThread Thread = "worker" // a dedicated worker
)

// Launch says which browser is used and how.
type Launch struct {
	Headed bool     // with a window, on a private display if there is none
	Attach string   // HOST:PORT or ws://… of a running browser; nothing is started
	Flags  []string // NAME[=VALUE]: flags in addition to ours
	Hand   Hand     // opens pages where a person has opened llmparity's own; nil: nobody has
}

// Running reports whether the browser runs already, so that none is started.
func (l Launch) Running() bool { return l.Attach != "" || l.Hand != nil }

// Hand is a person's browser, in which llmparity's own page is open. Package byhand has it.
type Hand interface {
	// Serve serves a site to that browser.
	Serve(http.Handler) (*serve.Server, error)
	// Tab returns what takes the place of a tab: a frame of the page. Its Close leaves the browser as it is.
	Tab(context.Context, Options) (Tab, error)
}

// Options are how a browser is started.
type Options struct {
	Launch
	Adapter Adapter
	Limits  Limits
	Stored  string // folder with what pages stored, which the new profile gets; empty: nothing
}

// Limits are the time limits of a start.
type Limits struct {
	Answer time.Duration // until the browser's first answer; 0: 1 min
	Tab    time.Duration // then until its first tab answers: 0.2 s, or 6 s at a fifth of a CPU; 0: 15 s
	Page   time.Duration // then until our page is ready; 0: 1 min
}

// OrDefault returns limits without zeros.
func (l Limits) OrDefault() Limits {
	return Limits{cmp.Or(l.Answer, time.Minute), cmp.Or(l.Tab, 15*time.Second), cmp.Or(l.Page, time.Minute)}
}

// Tab is a running browser with one tab of ours. Errors of its methods have the meaning that Process.Meaning gives
// them: first the loss of the browser, then the end of ctx, then a *Thrown.
type Tab interface {
	State
	// Listen sets who hears of the page's events. Earlier ones do not matter, but for a crash.
	Listen(Listener)
	// Open opens our page, whose files have the base address. An *Aborted is worth repeating.
	Open(ctx context.Context, base, url string) error
	// Identify finds the page's process, while the page compiles its engine.
	Identify(context.Context) error
	// Enter finds the engine's thread, which is there, and gives it the binding.
	Enter(context.Context, Thread) error
	// Evaluate evaluates an expression in a thread and awaits its promise. The worker's is there after Enter.
	Evaluate(ctx context.Context, in Thread, expression string) (json.RawMessage, error)
	// Turns waits for the event loop of the engine's thread to turn.
	Turns(context.Context) error
	// Answers waits for the browser's answer, whatever the page does.
	Answers(context.Context) error
	// Collect collects garbage in the engine's thread and the page's.
	Collect(context.Context) error
	// Roles names the browser's visible processes, of which Members lists those that can be found without asking it.
	Roles(context.Context) (map[int]string, error)
	Members() []int
	// Renderer is the page's process; 0: unknown.
	Renderer() int
	// Inside returns sources that only this browser has for the inside of a page.
	Inside(context.Context) ([]sample.Source, error)
	// Workers lists the page's dedicated workers; Heap is the source of one's heap, nil without one.
	Workers(context.Context) ([]string, error)
	Heap(worker string) sample.Source
	// Adapter is what the browser itself knows of its WebGPU adapter; nil: nothing that the page does not.
	Adapter(context.Context) (*Adapted, error)
	// Profile profiles the page and its current workers.
	Profile(context.Context, []engine.Profile) (func(context.Context, string) error, error)
	// Unreachable explains why the page did not open.
	Unreachable(err error, base string) error
	// Failed ends a browser that did not become ready, with a report about it.
	Failed(path string, err error) error
	// Quit ends a browser that we started as its user does, so that what pages have stored is complete. Close follows.
	Quit(context.Context) error
	Close() error
}

// State is how a browser is: Process has it.
type State interface {
	// Context ends, with its cause, when the browser or the page is lost.
	Context() context.Context
	// Lose makes the page lost; the first cause counts.
	Lose(cause error)
	// Lost is how the page was lost; nil if it was not.
	Lost() error
	// LossComes waits for the report that the page is lost; false: there is none.
	LossComes() bool
	// OnFullDisk makes an error a full disk's if the disk of the browser's profile is full.
	OnFullDisk(error) error
	// Facts are what is recorded of the browser.
	Facts() *Facts
	// Keep moves what pages have stored into a folder, once the browser has quit.
	Keep(folder string) error
	// Kept is the size of what pages have stored, in bytes; -1: not known.
	Kept() int64
	// Telling is the most telling line of its output.
	Telling() string
}

// Listener hears of a page's events, on the goroutine that reads them, so it must be fast. An event that precedes the
// answer to a call is heard before the call returns.
type Listener interface {
	Reported(payload string) // by the binding
	Threw(*Thrown)           // what nobody caught
	Said(text string)        // an error on the console
}

// Adapted describes a WebGPU adapter beyond what a page may know.
type Adapted struct {
	Name    string `json:"name"`
	Driver  string `json:"driver"`
	Backend string `json:"backend"`
	Type    string `json:"type"`
}

// Thrown is what the page threw, on one line and without the stack.
type Thrown struct{ Text string }

func (t *Thrown) Error() string { return "in the page: " + t.Text }

// Aborted is a load of the page that the browser ended, as it does when the renderer ends meanwhile.
type Aborted struct{ Err error }

func (a *Aborted) Error() string { return a.Err.Error() }
func (a *Aborted) Unwrap() error { return a.Err }

// Unread returns the error of a read of a source. If the page is lost, the source is gone.
func Unread(ctx context.Context, s State, err error) error {
	switch {
	case err == nil:
		return nil
	case s.Lost() != nil:
		return fmt.Errorf("%w: %w", sample.ErrGone, s.Lost())
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}
