package llamacpp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"llmparity/internal/child"
	"llmparity/internal/engine"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/logs"
	"llmparity/native/wire"
)

// errClosed is a call whose server was ended under it, or long before it.
var errClosed = engine.Fail(record.Cancelled, "the llama-server session is closed")

// grace is how long a server that is asked to end may take. It has nothing to save.
const grace = 2 * time.Second

// session is one launch.
type session struct {
	config Config
	pick   func() (int, error)
	binary identity
	probe  engine.Probe

	own     launch.Held[server]
	turns   engine.Turns
	held    cached
	context int         // what a prompt and its continuation may come to
	givenUp atomic.Bool // a slot may still be at work for a request that was given up
	primed  sync.Map    // the ids of prompts that are about to be asked for
}

// Load starts a server and waits for the model.
func (s *session) Load(ctx context.Context, m engine.Model) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("loading %s: %w", m.Path, err)
	}
	if err := m.Same(); err != nil {
		return err
	}
	m, err := s.config.whole(m)
	if err != nil {
		return err
	}
	return engine.Repeat(ctx, s.probe, "llama-server",
		func() error { return child.OnFreePort(s.pick, s.starts(ctx, m)) })
}

// starts gives what starts a server on a port and has it load the model.
func (s *session) starts(ctx context.Context, m engine.Model) func(port int) error {
	return func(port int) error {
		srv, err := s.own.Start(func() (*server, error) {
			return startServer(s.config, s.binary, m, port, s.probe)
		})
		if err != nil {
			return err
		}
		props, err := srv.ready(ctx, m, s.probe)
		if err == nil {
			err = m.Same() // it has been read from the path by now
		}
		if err == nil {
			err = s.loaded(ctx, srv, m, props)
		}
		if err != nil {
			s.drop(srv, 0)
		}
		return err
	}
}

// loaded tells what now runs.
func (s *session) loaded(ctx context.Context, srv *server, m engine.Model, props properties) error {
	said := srv.said(ctx)
	if err := s.offloaded(said); err != nil {
		return err
	}
	srv.Look()
	if n := s.config.slots(); props.Slots > 0 && props.Slots != n {
		return engine.Fail(record.SetUp, "llama-server was asked for %d slots and has %d", n, props.Slots)
	}
	s.context = launch.Window(s.probe, "llama-server", m.Context, props.Settings.Context)
	s.givenUp.Store(false)
	policy := s.config.policy(m, said)
	policy["context"] = strconv.Itoa(props.Settings.Context)
	s.config.parallel(policy)
	policy["ignore_eos"] = "goes on behind the end of a text by another completion"
	parts := s.binary.parts()
	parts["build"] = props.Build
	s.probe.Event(record.Event{At: time.Now(), Engine: &record.EngineInfo{
		Name: Name, Version: s.binary.version, Path: s.binary.path, SHA256: s.binary.sha256, Args: srv.args,
		Parts: parts, Policy: policy,
	}})
	s.held.clear(s.config.slots())
	s.primed.Clear() // another model may have other tokens
	if len(said.Buffers) == 0 {
		engine.Warn(s.probe, "sizes-untold",
			"llama-server's log does not tell the sizes of its buffers in words that are known")
		return nil
	}
	if !srv.Also(sizes("server", srv.PID(), said, s.held.tokens), s.probe.Attach) {
		return errClosed
	}
	return nil
}

// offloaded tells what holds the layers, where a GPU was to.
func (s *session) offloaded(said logs.Load) error {
	if s.config.GPULayers == 0 {
		return nil
	}
	d, err := s.config.device(said)
	if err != nil {
		return err
	}
	s.probe.Event(record.Event{At: time.Now(), Device: &d})
	return nil
}

// drop ends a server that is still the session's.
func (s *session) drop(srv *server, grace time.Duration) {
	srv.End(grace)
	s.own.Drop(srv)
}

// Unload ends the server: the memory is released when its process is gone.
func (s *session) Unload(ctx context.Context) error {
	srv, err := s.own.Now()
	if err != nil {
		return nil // nothing is loaded
	}
	patience := grace
	if ctx.Err() != nil {
		patience = 0
	}
	crashed := srv.Ended(0) && !srv.Asked() // while nothing was asked of it
	s.drop(srv, patience)
	if crashed && !srv.reported.Load() && ctx.Err() == nil {
		return srv.crashed()
	}
	return nil
}

// Close ends the server at once, also one that is loading or generating.
func (s *session) Close() error {
	if srv := s.own.Close(); srv != nil {
		srv.End(0)
	}
	return nil
}

// Generate tokenises the prompt, which is not timed, and streams its continuation.
func (s *session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	free, err := s.turns.Take()
	if err != nil {
		return record.Usage{}, err
	}
	defer free()
	srv, err := s.own.Now()
	if err != nil {
		return record.Usage{}, err
	}
	s.held.begin()
	ended := s.held.lost // unless the end is told
	defer func() { ended() }()
	ids, err := s.prepare(ctx, srv, r)
	if err != nil {
		return record.Usage{PromptIDs: ids}, s.explain(ctx, srv, err)
	}
	g := &generation{
		client: srv.client, token: token,
		body:  newCompletion(ids, r.MaxTokens, r.Temperature, r.NewSeed()),
		usage: record.Usage{PromptIDs: ids}, beyond: r.IgnoreEOS, batched: s.config.slots() > 1 || s.config.PromptCache,
	}
	g.body.CachePrompt = s.config.PromptCache
	err = g.run(ctx)
	if err == nil {
		ended = func() { s.held.end(g.slot, g.cached) }
	}
	g.warn(s.probe)
	if err != nil {
		s.givenUp.Store(true)
		if ctx.Err() != nil {
			g.usage.Finish = "cancelled"
		}
		return g.usage, s.explain(ctx, srv, err)
	}
	g.counted(s.probe)
	return g.usage, nil
}

// prepare gives the prompt's ids, once the slot is free and if there is room for what is asked.
func (s *session) prepare(ctx context.Context, srv *server, r engine.Request) ([]int, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if err := s.free(ctx, srv); err != nil {
		return nil, err
	}
	ids, err := s.tokens(ctx, srv, r.Prompt)
	if err != nil {
		return nil, fmt.Errorf("tokenising the prompt: %w", err)
	}
	if len(ids) == 0 {
		return nil, engine.Fail(record.SetUp, "the prompt has no tokens")
	}
	if len(ids)+r.MaxTokens > s.context {
		return ids, engine.TooLong("the prompt of %d tokens and %d tokens to generate do not fit in a context of %d",
			len(ids), r.MaxTokens, s.context)
	}
	return ids, nil
}

// mostPrimed is how many tokens of prompts are kept.
const mostPrimed = 4 << 20

var _ engine.Primer = (*session)(nil)

// Prime has the server find the tokens of prompts.
func (s *session) Prime(ctx context.Context, prompts []string) error {
	srv, err := s.own.Now()
	if err != nil {
		return err
	}
	s.primed.Clear()
	n := 0
	for _, prompt := range prompts {
		if _, known := s.primed.Load(prompt); known {
			continue
		}
		ids, err := srv.client.tokenize(ctx, prompt)
		if err != nil {
			return s.explain(ctx, srv, fmt.Errorf("tokenising a prompt: %w", err))
		}
		if n += len(ids); n > mostPrimed {
			break // the others are made when they are asked for
		}
		s.primed.Store(prompt, ids)
	}
	return nil
}

func (s *session) tokens(ctx context.Context, srv *server, prompt string) ([]int, error) {
	if ids, ok := s.primed.Load(prompt); ok {
		return slices.Clone(ids.([]int)), nil
	}
	return srv.client.tokenize(ctx, prompt)
}

// free waits until the server noticed that a request was given up: until no more slots are at work than generations go
// on beside this one. A server that doesn't tell about its slots queues the next request, which is right too.
func (s *session) free(ctx context.Context, srv *server) error {
	for s.givenUp.Load() {
		busy, err := srv.client.busy(ctx)
		if err != nil && wire.RefusalOf(err) == nil {
			return fmt.Errorf("waiting for llama-server to be free: %w", err)
		}
		if busy <= s.turns.Going()-1 {
			s.givenUp.Store(false)
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// explain tells what lies behind an error of the client's: our own doing, or the server's end.
func (s *session) explain(ctx context.Context, srv *server, err error) error {
	var failure *engine.Failure
	switch {
	case ctx.Err() != nil:
		srv.reported.Store(true)
		return fmt.Errorf("generating with llama-server: %w", ctx.Err())
	case srv.Asked():
		return errClosed
	case errors.As(err, &failure):
		return err
	case wire.RefusalOf(err) != nil:
		return engine.Fail(record.Other, "%w", err)
	case srv.Ended(time.Second): // the connection breaks a moment before the process is reaped
		if srv.Asked() {
			return errClosed
		}
		srv.reported.Store(true)
		return srv.crashed()
	}
	return engine.Fail(record.Other, "generating with llama-server: %w", err)
}
