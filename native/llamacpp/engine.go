// Package llamacpp drives llama.cpp: as a server, and by its one-shot program.
//
// Engine starts a llama-server of its own on the loopback interface for every launch and speaks HTTP to it. Its token
// times are those at which the client read the token's event, so they carry the server's JSON and the socket; the
// server's own timings are reported beside them. OneShot starts a process a generation, which prints text and no ids.
// Both compute on the CPU unless they are told to put layers on a GPU. Two things differ from other engines by
// llama.cpp's nature, and are in the record's policy: behind the end of a text the server goes on by another
// completion, the program by never choosing the token that ends it; and both map the model's file, so that the resident
// weights are page cache that other processes may share. What their logs say of buffers goes into the record as the
// engine's own word.
package llamacpp

import (
	"context"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/program"
)

// Name is the engine's name in plans and records.
const Name = "llamacpp"

// Engine is llama.cpp through llama-server.
type Engine struct {
	config Config
	pick   func() (int, error) // a port

	known known
}

// New makes the engine; nothing is looked for yet.
func New(c Config) *Engine { return &Engine{config: c, pick: child.FreePort} }

// Name is Name.
func (*Engine) Name() string { return Name }

// Caps is what llama-server can do. No process exists before the model is loaded.
func (l *Engine) Caps() engine.Caps {
	return engine.Caps{IgnoreEOS: true, TokenIDs: true, Exact: true, PromptCache: l.config.PromptCache,
		Requests:  l.config.slots(),
		Isolation: record.OfLaunch, Scores: true, Rounds: l.config.coarse()}
}

// Check looks for llama-server and reads the model's header.
func (l *Engine) Check(ctx context.Context, m engine.Model) error {
	if err := checkModel(m); err != nil {
		return err
	}
	m, err := l.config.whole(m)
	if err != nil {
		return err
	}
	b, err := l.identify(ctx)
	if err != nil {
		return err
	}
	if _, err := b.options.fitted(serverProgram(), b.path, l.config.server(m, 0)); err != nil {
		return err
	}
	return l.config.gpu(ctx, serverProgram(), b.path)
}

// checkModel leaves the architecture to llama-server, which knows more of them than we do.
func checkModel(m engine.Model) error {
	if m.Format != "" && m.Format != "gguf" {
		return fault.New(fault.BadModel, "name its GGUF, which both engines run",
			"llama.cpp runs GGUF files; the model %s is a %s package", m.Name, m.Format)
	}
	return program.CheckGGUF(m)
}

// Open identifies the server and the machine, so that nothing of it falls into a timed phase. It starts nothing that
// stays.
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
