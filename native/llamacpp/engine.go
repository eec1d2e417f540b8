// Package llamacpp drives llama.cpp as a server and as its one-shot program.
//
// New's engine starts a llama-server on the loopback interface for each launch and talks HTTP to it. A token's time is
// when the client has read its event, so it includes the server's JSON encoding and the socket; the server's own
// timings are recorded, too. NewOneShot's starts a process for each generation, which prints text without ids. Both
// compute on the CPU unless told to put layers on a GPU.
//
// Two differences from other engines are noted in the record's policy. To continue after the end of a text, the server
// needs a second request, and the program never chooses the end token. Both map the model file, so resident weights
// are page cache that other processes may share. Buffer sizes in the record are what the log reports, not
// measurements.
package llamacpp

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/machine"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/program"
)

// Names of the engines in plans and records.
const (
	Name        = "llamacpp"
	OneShotName = "llamacpp-oneshot"
)

// Engine is llama.cpp through one of its programs.
type Engine struct {
	config  Config
	oneShot bool
	known   program.Known[identity]
}

// New makes the engine that uses llama-server, without searching for anything.
func New(c Config) *Engine {
	return &Engine{config: c, known: program.Known[identity]{In: c.in}}
}

// NewOneShot makes the engine that uses llama-completion or its predecessors: a process that loads the model, continues
// one prompt and ends. It prints text, not tokens. Pieces have the times at which they were read; the program's own
// timing lines count tokens. To continue a text it never chooses the end token, so from there its text may differ from
// that of other engines.
func NewOneShot(c Config) *Engine {
	c.Slots, c.PromptCache, c.in = 0, false, nil // each process does one generation
	return &Engine{config: c, oneShot: true}
}

// Name returns the engine's name.
func (l *Engine) Name() string {
	if l.oneShot {
		return OneShotName
	}
	return Name
}

// Caps returns what the program can do. Neither has a process before the model is loaded.
func (l *Engine) Caps() engine.Caps {
	server := !l.oneShot
	return engine.Caps{IgnoreEOS: true, TokenIDs: server, TakesIDs: server, Exact: server, Scores: server,
		PromptCache: l.config.PromptCache, Requests: l.config.slots(), Isolation: record.OfLaunch,
		PerGeneration: l.oneShot, Rounds: l.config.coarse()}
}

// Room returns how much memory its container leaves.
func (l *Engine) Room(ctx context.Context) (free int64, how string, ok bool) {
	return l.config.in.Room(ctx)
}

// Check finds the program and reads the model's header.
func (l *Engine) Check(ctx context.Context, m models.Model) error {
	if err := program.CheckGGUF("llama.cpp", m); err != nil {
		return err
	}
	b, err := l.identify(ctx)
	if err != nil {
		return err
	}
	flags := l.config.server(m, 0)
	if l.oneShot {
		flags = l.config.oneShot(m, "", "", engine.Request{MaxTokens: 1, IgnoreEOS: true})
	}
	return l.config.fits(ctx, b, flags)
}

// Open identifies the program and the machine before any timed phase. It starts nothing that outlives the call.
func (l *Engine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	b, err := l.identify(ctx)
	if err != nil {
		return nil, err
	}
	if l.config.GPULayers == 0 { // else the device is known only after the load
		p.Event(record.Event{At: time.Now(), Device: &record.Device{Class: record.CPU, Name: machine.CPU(),
			Detail: map[string]string{"threads": strconv.Itoa(l.config.threads()), "gpu_layers": "0"}}})
	}
	if l.oneShot {
		name := filepath.Base(b.path)
		s := &oneShotSession{config: l.config, binary: b, probe: p, name: name,
			own: launch.Held[fitting]{Name: name, Closed: errClosed}}
		s.closing, s.close = context.WithCancel(context.Background()) // a session outlives the Open call
		return s, nil
	}
	return &session{config: l.config, binary: b, probe: p, own: launch.Held[server]{
		Name: "llama-server", Closed: errClosed, Turns: engine.Turns{Most: l.config.slots()}}}, nil
}

// identify finds the program and asks what it is.
func (l *Engine) identify(ctx context.Context) (identity, error) {
	p, given := l.config.program(l.oneShot)
	path, err := p.Find(given, l.config.Cache)
	if err != nil {
		return identity{}, err
	}
	b, err := l.known.Of(path, func(sha256 string) (identity, error) {
		v, err := p.Version(ctx, path, l.config.environment(""), versionLine)
		if err != nil {
			return identity{}, err
		}
		help, err := p.Ask(ctx, path, "--help", l.config.environment(""))
		return identity{program: p, path: path, version: v, sha256: sha256, options: listed(help),
			libraries: LibrariesSHA256(l.config.in.Outside(path))}, err
	})
	// Newer llama-cli is a chat client: it lacks --prompt-cache, which every one-shot version has.
	if _, ok := b.options["--prompt-cache"]; l.oneShot && b.options != nil && !ok {
		return identity{}, p.Unfit(
			"%s is not llama.cpp's one-shot program: it lacks --prompt-cache (newer llama-cli is a chat client)", path)
	}
	return b, err
}
