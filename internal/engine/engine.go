// Package engine is the seam between the runner and everything that can generate text.
//
// An engine is opened once a launch: Open, Load, Generate (any number), Unload, Close. The package holds no engine
// itself; enginetest holds the suite that each of them must pass.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample"
)

// Probe is how an engine tells the runner what it sees. The runner implements it; no method blocks.
type Probe interface {
	// Attach begins to sample a source: a renderer, a server. The function returned ends it.
	Attach(sample.Source) (detach func())
	// Span reports a stage of the load.
	Span(record.Span)
	// Event reports versions, device, clock offsets.
	Event(record.Event)
	// Log takes what the engine prints, under a name such as llama-server; the engine closes it. It never fails: a log
	// is not worth a measurement. Where the writer has a method Name, that is its file's.
	Log(name string) io.WriteCloser
	// Warn reports what a reader of the figures must know.
	Warn(record.Warning)
}

// Caps is what an engine can do and another can't.
type Caps struct {
	IgnoreEOS bool // generates the number of tokens asked for, whatever the model says
	Resident  bool // the process exists before the model is loaded, so that a baseline can be taken
	// tells the ids of the prompt and of every token; else tokens carry record.NoID, and texts are what can be compared
	TokenIDs bool
	Exact    bool // tells of every token when it comes; else of pieces of text, and Usage.Generated counts the tokens
	// PromptCache tells that tokens of a prompt may come from a cache, which can't be switched off or was not to be;
	// Usage.CachedTokens says how many did. record.CacheUntold where it can't be known.
	PromptCache bool
	Served      bool // can run a model that has no file here: one that a server knows by its name
	Scores      bool // its sessions are Scorers
	// Rounds says that it computes otherwise than in single precision and one sum after another: where two tokens are
	// close, it may choose the other one.
	Rounds bool
	// Requests is how many generations may go on at a time in a session; one more is refused with ErrBusy.
	Requests int
	// Isolation is what a session has of its own: record.OfLaunch, record.OfTab, record.OfServer.
	Isolation string
	// PerGeneration tells that every generation has a process of its own, which loads the model: no session can be
	// reused.
	PerGeneration bool
}

// ErrBusy refuses a generation while as many go on as the engine can do at a time.
var ErrBusy = errors.New("the engine does no more generations at a time; wait for one that goes on")

// Model is what an engine is asked to load.
type Model struct {
	record.Model
	Path string // the GGUF file
	// Unsupported says why nothing of this program can compute with it; nil: it can. Engines that are programs of their
	// own may know more architectures.
	Unsupported error
	// File is what it was when its sum was taken; nil: not known.
	File os.FileInfo
}

// Same says that the file is another one than it was, as far as its place, size and time can tell: no figure is its
// model's any more.
func (m Model) Same() error {
	if m.File == nil {
		return nil
	}
	now, err := os.Stat(m.Path)
	if err == nil && os.SameFile(now, m.File) && now.Size() == m.File.Size() && now.ModTime().Equal(m.File.ModTime()) {
		return nil
	}
	return fault.New(fault.BadModel, "let it be while a run goes on, and try again",
		"model %s was replaced or changed since the run began", m.Path)
}

// Request is one generation.
type Request struct {
	Prompt      string // raw: no chat template is applied
	MaxTokens   int
	Temperature float64
	IgnoreEOS   bool
}

// Check refuses a generation without a token.
func (r Request) Check() error {
	if r.MaxTokens < 1 {
		return Fail(record.SetUp, "a generation of %d tokens was asked for", r.MaxTokens)
	}
	return nil
}

// Engine is a runtime that can generate; it is built with its own typed configuration.
type Engine interface {
	Name() string
	Caps() Caps
	// Check says whether the engine can run this model here. It starts nothing that outlives it.
	Check(context.Context, Model) error
	// Open starts what is needed before a model: the baseline is taken next.
	Open(context.Context, Probe) (Session, error)
}

// Preparer is an engine that must make something of a model, once, before it can be loaded: a package, a library. What
// it makes is cached; say is told about work that takes noticeable time.
type Preparer interface {
	Prepare(ctx context.Context, m Model, say func(string)) error
}

// Session is an open engine. Its methods are called one at a time, but for Generate, of which Caps.Requests may go on
// at once; Close may be called at any time, any number of times. After Unload, Load may be called again; before, it is
// refused. When ctx is cancelled a method stops its work, returns soon, and leaves the session fit for Unload and
// Close. A context is a call's alone: the session outlives that of Open, and its model that of Load.
type Session interface {
	Load(context.Context, Model) error
	// Generate calls token for every real token (without Caps.Exact: every piece), in order, from one goroutine, before
	// it returns.
	Generate(ctx context.Context, r Request, token func(record.Token)) (record.Usage, error)
	// Unload returns when the model's memory is released, or says that it is not.
	Unload(context.Context) error
	// Close ends everything that Open and Load started and removes what they left on disk.
	Close() error
}

// Failure is an error with its class. A crash fails the pending calls at once with one.
type Failure struct {
	Class record.Class
	Err   error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Fail makes a Failure.
func Fail(class record.Class, format string, args ...any) *Failure {
	return &Failure{Class: class, Err: fmt.Errorf(format, args...)}
}

// SetUp makes a Failure of what a person must mend first.
func SetUp(err error) error { return &Failure{Class: record.SetUp, Err: err} }

// TooLong makes the Failure of a prompt that does not fit.
func TooLong(format string, args ...any) error {
	return SetUp(fault.New(fault.PromptTooLong,
		"shorten the prompt, ask for fewer tokens or give the model a larger context", format, args...))
}

// Warn reports what a reader of the figures must know, on one line.
func Warn(to Teller, code, format string, args ...any) {
	to.Warn(record.Warning{Code: code, Text: fault.OneLine(fmt.Sprintf(format, args...))})
}

// ClassOf gives the class of an error: that of a Failure in its chain, else what the error itself tells.
func ClassOf(err error) record.Class {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f.Class
	case errors.Is(err, context.DeadlineExceeded):
		return record.Timeout
	case errors.Is(err, context.Canceled):
		return record.Cancelled
	}
	return record.Other
}
