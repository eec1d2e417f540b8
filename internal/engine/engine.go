// Package engine is the seam between the runner and everything that can generate text.
//
// For each launch an engine goes through Open, Load, Generate (any number of times), Unload and Close. The package
// contains no engine; package enginetest has the suite that every engine passes.
package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"llmparity/internal/depth"
	"llmparity/internal/host/sample"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// Probe receives what an engine reports to the runner. The runner implements it; no method blocks.
type Probe interface {
	// Attach starts sampling a source, such as a renderer or a server, until detach is called.
	Attach(sample.Source) (detach func())
	// Span reports a stage of the load.
	Span(record.Span)
	// Event reports versions, the device and clock offsets.
	Event(record.Event)
	// Log opens a log for output of the engine, which must close it. It never fails, because a log is not worth a
	// measurement. If the writer has a method Name, that is the file's name.
	Log(name string) io.WriteCloser
	// Warn reports what a reader of the figures must know.
	Warn(record.Warning)
}

// Caps lists the capabilities in which engines differ.
type Caps struct {
	IgnoreEOS bool // generates the requested number of tokens even if the model ends the text
	Resident  bool // has a process before the model is loaded, so that a baseline can be taken
	// TokenIDs: reports the ids of the prompt and of each token. Without it tokens carry record.NoID, and only texts
	// can be compared.
	TokenIDs bool
	TakesIDs bool // takes a prompt as token ids, see Request.IDs
	Exact    bool // reports each token; without it pieces of text, and Usage.Generated counts the tokens
	// PromptCache: prompt tokens may come from a cache, because it cannot be switched off or was not meant to be.
	// Usage.CachedTokens counts them, or is record.CacheUnknown.
	PromptCache bool
	Served      bool // can run a model that has no file here but a name on a server
	Scores      bool // its sessions are Scorers
	// Rounds: computes at less than single precision or sums in another order, so it may choose another token where
	// two are close.
	Rounds bool
	// Requests is how many generations a session can run at a time. One more is refused with ErrBusy.
	Requests int
	// Isolation is what each session has to itself: record.OfLaunch, record.OfTab or record.OfServer.
	Isolation string
	// PerGeneration: each generation starts a process that loads the model, so sessions cannot be reused.
	PerGeneration bool
}

// ErrBusy refuses a generation while the engine is already running as many as it can.
var ErrBusy = errors.New("the engine cannot run more generations at a time; wait for one to finish")

// Request asks for one generation, of at least one token.
type Request struct {
	Prompt      string // raw: no chat template is applied
	IDs         []int  // the prompt's token ids, for engines with Caps.TakesIDs; nil: the engine tokenises Prompt
	MaxTokens   int
	Temperature float64
	IgnoreEOS   bool
}

// NewSeed returns a random seed in the range that every engine takes; 0 if nothing is sampled.
func (r Request) NewSeed() uint32 {
	if r.Temperature <= 0 {
		return 0
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint32(b[:]) >> 1
}

// Rendered is a prompt as a model's chat template has it, with its token ids.
type Rendered struct {
	Text string
	IDs  []int
}

// Renderer is an engine that renders texts with a model's own chat template, each as the message of a user. It starts
// nothing that outlives the call.
type Renderer interface {
	Chat(ctx context.Context, m models.Model, texts []string) ([]Rendered, error)
}

// Namer is an engine with names of its own for models. It returns what a plan's model calls such a model.
type Namer interface{ Named(name string) string }

// Counter is an engine on a server that counts the tokens of a prompt, with those that the server puts before it. It
// generates one token at most.
type Counter interface {
	Count(ctx context.Context, m models.Model, prompt string) (int, error)
}

// Engine is a runtime that can generate text. Each is built with its own typed configuration.
type Engine interface {
	Name() string
	Caps() Caps
	// Check says whether the engine can run this model here. It starts nothing that outlives the call.
	Check(context.Context, models.Model) error
	// Open starts what runs before a model is loaded; the runner then takes the baseline.
	Open(context.Context, Probe) (Session, error)
}

// Opener is an engine that opens for a model, because its browser is to have some of it already.
type Opener interface {
	OpenFor(context.Context, models.Model, Probe) (Session, error)
}

// OpenFor opens an engine for a model.
func OpenFor(ctx context.Context, e Engine, m models.Model, p Probe) (Session, error) {
	if o, ok := e.(Opener); ok {
		return o.OpenFor(ctx, m, p)
	}
	return e.Open(ctx, p)
}

// Preparer is an engine that must make something from a model before it can load it, such as a package or a library.
// The result is cached; say reports slow steps.
type Preparer interface {
	Prepare(ctx context.Context, m models.Model, say func(string)) error
}

// Session is an open engine. Package enginetest checks that
//   - Open, or Load, reports the engine with its policy, and the device with its class and name;
//   - sources are attached after Load and detached by Close; an engine that is Resident, and no other, attaches some
//     before Load;
//   - Load reports a Span for at least one stage, and Generate one for Prefill and one for Decode, without which there
//     is no decode speed; each says How it was measured;
//   - Usage.Reported has the engine's own counts or timings;
//   - Generate fails if the session is closed, before or meanwhile.
//
// A session's methods are called one at a time, with two exceptions: up to Caps.Requests calls of Generate may overlap,
// and Close may be called at any time and repeatedly. Load is refused until Unload if a model is loaded. If ctx is
// cancelled, a method returns soon and leaves the session ready for Unload and Close. The session outlives the context
// of Open, and the model that of Load.
type Session interface {
	Load(context.Context, models.Model) error
	// Generate calls token for each token (without Caps.Exact: each piece), in order, from one goroutine, before it
	// returns.
	Generate(ctx context.Context, r Request, token func(record.Token)) (record.Usage, error)
	// Unload returns once the model's memory is released, or returns an error.
	Unload(context.Context) error
	// Close ends everything that Open and Load started and removes what they left on disk.
	Close() error
}

// Settled is an engine that knows, before it is opened, the settings of a run that affect memory. Names are those of
// EngineInfo.Policy, which later records the real values. What is not known yet is left out. A Preparer is asked after
// Prepare.
type Settled interface {
	Settings(models.Model) map[string]string
}

// Limited is an engine whose processes may use less memory than this machine has. Room says how much more; false: no
// less, or that is unknown.
type Limited interface {
	Room(context.Context) (free int64, how string, ok bool)
}

// Fetcher is an engine that downloads a part once.
type Fetcher interface {
	// Lacks says what must be downloaded; empty: nothing.
	Lacks() string
	// Fetch downloads it. Whatever needs the part calls it, too; say reports slow steps.
	Fetch(ctx context.Context, say func(string)) error
}

// Profile is a kind of profile that an engine can write.
type Profile string

// Kinds of profiles. A heap snapshot is taken at the end of a phase; the others cover the phase.
const (
	HeapSnapshot    Profile = "heap-snapshot"
	SamplingProfile Profile = "sampling-profile" // which code allocated the live memory
	Trace           Profile = "trace"
	CPUProfile      Profile = "cpu-profile"
)

// Profiler is a session that can be profiled. Profiling costs time and memory: never compare figures of a profiled
// launch.
type Profiler interface {
	// Profile starts profiles. finish ends them and writes files whose names begin with prefix; it is never nil and
	// must be called once. An error of either is not a reason to abandon the launch.
	Profile(ctx context.Context, kinds []Profile) (finish func(ctx context.Context, prefix string) error, err error)
}

// DeepProfiler is a session that can time its own operators.
type DeepProfiler interface {
	// Deep generates once with its operators timed. What else it has goes into files whose names begin with prefix.
	Deep(ctx context.Context, r Request, prefix string) (depth.Profile, error)
}

// ErrShallow is returned by a session that cannot time its operators here.
var ErrShallow = errors.New("the engine computes where its operators cannot be timed")

// Failure is an error with a class for the record. A crash makes pending calls fail at once.
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

// SetUp makes a Failure that a person must fix before another try.
func SetUp(err error) error { return &Failure{Class: record.SetUp, Err: err} }

// TooLong makes the Failure for a prompt that does not fit.
func TooLong(format string, args ...any) error {
	return SetUp(fault.New(fault.PromptTooLong,
		"shorten the prompt, request fewer tokens, or use a larger context", format, args...))
}

// Warn reports a warning on one line.
func Warn(to Teller, code, format string, args ...any) {
	to.Warn(record.Warning{Code: code, Text: fault.OneLine(fmt.Sprintf(format, args...))})
}

// ClassOf returns the class of an error: that of a Failure in its chain, else one derived from the context error.
func ClassOf(err error) record.Class {
	f, classed := errors.AsType[*Failure](err)
	switch {
	case classed:
		return f.Class
	case errors.Is(err, context.DeadlineExceeded):
		return record.Timeout
	case errors.Is(err, context.Canceled):
		return record.Cancelled
	}
	return record.Other
}

// Watchdog is how long a working engine may give no sign of life, unless the user sets another limit.
const Watchdog = time.Minute

// Turns limits how many generations run at a time. Most is set before the first; 0 means one.
type Turns struct {
	Most int

	mu    sync.Mutex
	going int
}

// Take takes a turn or returns ErrBusy. free returns the turn; calling it again has no effect.
func (t *Turns) Take() (free func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if most := max(1, t.Most); t.going >= most {
		if most > 1 {
			return nil, fmt.Errorf("%d generations are running: %w", t.going, ErrBusy)
		}
		return nil, ErrBusy
	}
	t.going++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.going--
	}), nil
}

// Going returns how many generations are running.
func (t *Turns) Going() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.going
}

// Unmeasured is a Probe that discards everything except that it closes sources.
type Unmeasured struct{}

// Attach reads nothing, but closes the source.
func (Unmeasured) Attach(s sample.Source) func() {
	return func() {
		if c, ok := s.(io.Closer); ok {
			_ = c.Close() // it was never read
		}
	}
}

// Span discards a stage.
func (Unmeasured) Span(record.Span) {}

// Event discards an event.
func (Unmeasured) Event(record.Event) {}

// Warn discards a warning.
func (Unmeasured) Warn(record.Warning) {}

// Log discards output.
func (Unmeasured) Log(string) io.WriteCloser { return record.Discard }
