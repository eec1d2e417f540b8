// Package protocol runs external engines: programs that speak JSON lines on standard input and output, as
// docs/howto/add-an-engine.md describes.
//
// The program is started for every launch, before there is a model, and sampled like any other engine. A token's time
// is when its line was read, pipe included, unless the engine reports times of the shared monotonic clock. Token ids
// and texts can be compared with other engines. Counts and times that the engine reports are only checked for being
// possible. An engine runs one generation at a time.
package protocol

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/place"
	"llmparity/native/program"
)

// Config is the configuration of an external engine.
type Config struct {
	Command
	Silence time.Duration     // longest silence during a request; 0: engine.Watchdog
	DType   string            // to compute in; "": not said
	Threads int               // 0: not said
	Called  string            // name in records; "": Prefix and the command's name
	Batch   int               // generations that are one request with "rows"; 0: none
	Parts   map[string]string // for the record, beside those that the engine reports
	Env     []string          // variables of the program
	In      *place.Place      // where it runs; nil: on this machine
}

// Engine is an external program.
type Engine struct {
	config Config

	known program.Known[string] // its hash
	sum   string                // at its first start; guarded by known

	mu    sync.Mutex
	hello message // its first answer to hello
}

// New makes the engine without starting anything.
func New(c Config) *Engine {
	c.Silence = cmp.Or(c.Silence, engine.Watchdog)
	return &Engine{config: c, known: program.Known[string]{In: c.In}}
}

// Name returns the name in records.
func (e *Engine) Name() string { return cmp.Or(e.config.Called, Prefix+e.config.Name) }

// Caps returns what the engine reported at Check or Open; before that, as little as possible.
func (e *Engine) Caps() engine.Caps {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.hello.Caps
	return engine.Caps{IgnoreEOS: c.IgnoreEOS, Resident: true, TokenIDs: c.IDs, TakesIDs: c.IDs, Exact: c.Exact,
		PromptCache: c.PromptCache,
		Served:      slices.Contains(e.hello.Formats, record.Served), Isolation: record.OfLaunch,
		Requests: max(1, e.config.Batch),
		Scores:   c.Scores}
}

// Room returns how much memory its container leaves.
func (e *Engine) Room(ctx context.Context) (free int64, how string, ok bool) {
	return e.config.In.Room(ctx)
}

// Check starts the program to learn which models it runs, and ends it.
func (e *Engine) Check(ctx context.Context, m models.Model) error {
	format := cmp.Or(m.Format, models.GGUF)
	if m.Path != "" && format == models.GGUF {
		if err := program.CheckGGUF("the engine", m); err != nil {
			return err
		}
	} else if m.Path != "" {
		if _, err := os.Stat(m.Path); err != nil {
			return fault.Wrap(fault.BadModel, err, "", "model %s cannot be read", m.Name)
		}
	}
	s, err := e.Open(ctx, engine.Unmeasured{})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	e.mu.Lock()
	formats := e.hello.Formats
	e.mu.Unlock()
	if len(formats) == 0 {
		formats = []string{models.GGUF}
	}
	if !slices.Contains(formats, format) {
		return fault.New(fault.BadModel, "name another model or engine", "%s runs models in the format %s, but %s is %s",
			e.Name(), cut(strings.Join(formats, ", "), maxWord), m.Name, format)
	}
	return nil
}

// Accepts leaves the decision to the program, which is not started here.
func (e *Engine) Accepts(context.Context, models.Model) engine.Verdict {
	if _, err := e.find(); err != nil {
		return engine.Refuse(err)
	}
	return engine.Undecided("%s reports which models it runs when it starts", e.Name())
}

// Confirm starts the program and ends it again.
func (e *Engine) Confirm(ctx context.Context, m models.Model, _ func(string)) error {
	return e.Check(ctx, m)
}

// Open starts the program and reads what it is.
func (e *Engine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	path, err := e.find()
	if err != nil {
		return nil, err
	}
	s := &session{engine: e, probe: p, path: path, own: launch.Held[conn]{Name: e.Name(), Closed: errClosed,
		Turns: engine.Turns{Most: e.config.Batch}}}
	if s.sha256, err = e.known.Of(path, e.same); err != nil {
		return nil, err
	}
	if _, err := s.running(ctx); err != nil {
		_ = s.Close() // report the first error
		return nil, err
	}
	return s, nil
}

// find searches for the program at the given path, else on PATH.
func (e *Engine) find() (string, error) {
	if in := e.config.In; in != nil {
		path, err := in.Which(context.Background(), e.config.Argv[0])
		if err == nil && path == "" {
			err = engine.SetUp(fault.New(fault.NoProgram, "name a program of the container",
				"%s is not in container %s", e.config.Argv[0], in))
		}
		return path, err
	}
	path, err := exec.LookPath(e.config.Argv[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		return path, nil
	}
	return "", engine.SetUp(fault.Wrap(fault.NoProgram, cmp.Or(errors.Unwrap(err), err),
		"name an executable, as in exec:./my-engine", "%s cannot be run", e.config.Argv[0]))
}

// same refuses a program that has changed since its first start: its figures would be mixed with those of the first.
func (e *Engine) same(sum string) (string, error) {
	if e.sum = cmp.Or(e.sum, sum); e.sum == sum {
		return sum, nil
	}
	return "", &engine.Failure{Class: record.SetUp,
		Err: fault.New(fault.NoProgram, "leave it unchanged during a run, and try again",
			"the program %s was replaced or changed since its first start", e.config.Argv[0])}
}

// met keeps the first answer to hello. It refuses an engine that reports something else at a later start, because its
// figures could not be combined.
func (e *Engine) met(m message) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hello.Event == "" {
		e.hello = m
		return nil
	}
	for _, is := range []struct{ what, then, now string }{
		{"name", e.hello.Name, m.Name},
		{"version", e.hello.Version, m.Version},
		{"device", string(e.hello.Device.Class) + " " + e.hello.Device.Name, string(m.Device.Class) + " " +
			m.Device.Name},
		{"clock", e.hello.Clock, m.Clock},
		{"formats", strings.Join(e.hello.Formats, " "), strings.Join(m.Formats, " ")},
		{"caps", e.hello.Caps.String(), m.Caps.String()},
	} {
		if is.now != is.then {
			return &engine.Failure{Class: record.BadOutput, Err: fault.New(fault.BadProtocol, seeProtocol,
				"%s now reports the %s %q, at its first start %q", e.Name(), is.what, tidy(is.now),
				tidy(is.then))}
		}
	}
	return nil
}

// Kind is the kind of external engines: exec:PATH, exec:PATH ARGUMENTS… or exec:NAME=PATH ARGUMENTS….
var Kind = &engine.Kind{
	Name: Prefix, Title: "external engine", Inside: true,
	Shared: []string{"watchdog", "threads", "dtype", "container"},
	Axes:   []string{engine.AxisThreads}, Asks: true,
	Found: func(engine.Here) engine.Finding {
		return engine.Finding{Name: Prefix + "PATH", Can: "run your own program as an engine (docs/howto/add-an-engine.md)"}
	},
	Called: func(rest string) (string, error) {
		c, err := ParseCommand(rest)
		if err != nil {
			return "", fault.New(fault.Usage, "write exec:./my-engine or 'exec:./my-engine --its-flag'",
				"engine %q: %v", Prefix+rest, err)
		}
		return Prefix + c.Name, nil
	},
	New: func(name string, _ engine.Config, s engine.Settings) engine.Engine {
		c, _ := ParseCommand(strings.TrimPrefix(name, Prefix)) // validated by Called
		return New(Config{Command: c, Silence: s.Watchdog, DType: s.DType, Threads: s.Threads,
			In: place.In(s.Container)})
	},
}
