// Package llamacpp drives llama.cpp as a server and as its one-shot program.
//
// Engine starts a llama-server on the loopback interface for each launch and talks HTTP to it. A token's time is when
// the client has read its event, so it includes the server's JSON encoding and the socket; the server's own timings
// are recorded, too. OneShot starts a process for each generation, which prints text without ids. Both compute on the
// CPU unless told to put layers on a GPU.
//
// Two differences from other engines are noted in the record's policy. To continue after the end of a text, the server
// needs a second request, and the program never chooses the end token. Both map the model file, so resident weights
// are page cache that other processes may share. Buffer sizes in the record are what the log reports, not
// measurements.
package llamacpp

import (
	"context"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/program"
)

// Name is the engine's name in plans and records.
const Name = "llamacpp"

// Engine is llama.cpp through llama-server.
type Engine struct {
	config Config
	pick   func() (int, error) // picks a port

	known known
}

// New makes the engine without searching for anything.
func New(c Config) *Engine { return &Engine{config: c, pick: child.FreePort} }

// Name returns Name.
func (*Engine) Name() string { return Name }

// Caps returns what llama-server can do. It has no process before the model is loaded.
func (l *Engine) Caps() engine.Caps {
	return engine.Caps{IgnoreEOS: true, TokenIDs: true, Exact: true, PromptCache: l.config.PromptCache,
		Requests:  l.config.slots(),
		Isolation: record.OfLaunch, Scores: true, Rounds: l.config.coarse()}
}

// Check finds llama-server and reads the model's header.
func (l *Engine) Check(ctx context.Context, m engine.Model) error {
	if err := program.CheckGGUF("llama.cpp", m); err != nil {
		return err
	}
	b, err := l.identify(ctx)
	if err != nil {
		return err
	}
	return l.config.fits(ctx, serverProgram(), b, l.config.server(m, 0))
}

// Open identifies the server and the machine before any timed phase. It starts nothing that outlives the call.
func (l *Engine) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	b, err := l.identify(ctx)
	if err != nil {
		return nil, err
	}
	l.config.onCPU(p)
	return &session{config: l.config, pick: l.pick, binary: b, probe: p, turns: engine.Turns{Most: l.config.slots()},
		own: launch.Held[server]{Name: "llama-server", Closed: errClosed}}, nil
}

func (l *Engine) identify(ctx context.Context) (identity, error) {
	path, err := Find(l.config)
	if err != nil {
		return identity{}, err
	}
	return l.known.identify(ctx, serverProgram(), path)
}
