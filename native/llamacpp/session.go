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
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/internal/sample"
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

	mu     sync.Mutex // guards what Close may meet in use
	server *server
	closed bool

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
		srv, err := s.launch(m, port)
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

// launch starts a server under the lock, so that a Close either prevents it or ends it.
func (s *session) launch(m engine.Model, port int) (*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.server != nil {
		return nil, errors.New("llama-server has a model already; unload it first")
	}
	var err error
	s.server, err = startServer(s.config, s.binary, m, port, s.probe)
	return s.server, err
}

// loaded tells what now runs.
func (s *session) loaded(ctx context.Context, srv *server, m engine.Model, props properties) error {
	said := srv.said(ctx)
	if err := s.offloaded(said); err != nil {
		return err
	}
	srv.look()
	if n := s.config.slots(); props.Slots > 0 && props.Slots != n {
		return engine.Fail(record.SetUp, "llama-server was asked for %d slots and has %d", n, props.Slots)
	}
	s.context = props.Settings.Context
	s.givenUp.Store(false)
	if m.Context > 0 {
		if s.context != m.Context {
			s.probe.Warn(record.Warning{Code: "context-differs", Text: fmt.Sprintf(
				"llama-server was asked for a context of %d tokens and made one of %d", m.Context, s.context)})
		}
		s.context = min(s.context, m.Context)
	}
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
	if len(said.buffers) == 0 {
		s.probe.Warn(record.Warning{Code: "sizes-untold",
			Text: "llama-server's log does not tell the sizes of its buffers in words that are known"})
		return nil
	}
	return s.attach(srv, &logged{role: "server", pid: srv.proc.PID(), said: func() load { return said },
		held: s.held.tokens})
}

// attach has a source read for as long as the server is the session's.
func (s *session) attach(srv *server, src sample.Source) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != srv {
		return errClosed
	}
	srv.detach = append(srv.detach, s.probe.Attach(src))
	return nil
}

// offloaded tells what holds the layers, where a GPU was to.
func (s *session) offloaded(said load) error {
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
	srv.stop(grace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == srv {
		s.server = nil
	}
}

func (s *session) current() (*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case s.server == nil:
		return nil, errors.New("llama-server has no model; load one first")
	}
	return s.server, nil
}

// Unload ends the server: the memory is released when its process is gone.
func (s *session) Unload(ctx context.Context) error {
	srv, err := s.current()
	if err != nil {
		return nil // nothing is loaded
	}
	patience := grace
	if ctx.Err() != nil {
		patience = 0
	}
	crashed := srv.proc.Ended(0) && !srv.proc.Asked() // while nothing was asked of it
	s.drop(srv, patience)
	if crashed && !srv.reported.Load() && ctx.Err() == nil {
		return srv.crashed()
	}
	return nil
}

// Close ends the server at once, also one that is loading or generating.
func (s *session) Close() error {
	s.mu.Lock()
	s.closed = true
	srv := s.server
	s.server = nil
	s.mu.Unlock()
	if srv != nil {
		srv.stop(0)
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
	srv, err := s.current()
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
	if g.parted {
		s.probe.Warn(record.Warning{Code: "ids-lost",
			Text: "llama-server sends no event for a token that ends inside a character; asked again for the ids, " +
				"among other requests or with another part of the prompt in its cache, it said something else: some tokens carry no id"})
	}
	if g.heldBack > 0 {
		s.probe.Warn(record.Warning{Code: "held-back-tokens", Text: fmt.Sprintf(
			"llama-server sends no event for a token that ends inside a character: %d of %d tokens carry the time of the next event "+
				"and the id of an untimed second generation", g.heldBack, len(g.ids))})
	}
	if g.resumed > 0 {
		s.probe.Warn(record.Warning{Code: "behind-end", Text: fmt.Sprintf(
			"the text ended %d time(s) before its length; llama-server was asked to go on behind it, which costs a prefill each: its decode speed is not comparable", g.resumed)})
	}
	if err == nil {
		s.counted(g)
	}
	if err != nil {
		s.givenUp.Store(true)
		if ctx.Err() != nil {
			g.usage.Finish = "cancelled"
		}
		return g.usage, s.explain(ctx, srv, err)
	}
	return g.usage, nil
}

// counted warns where the server's own counts, which stay in the record, are not what came.
func (s *session) counted(g *generation) {
	own := g.usage.Reported
	if n, reported := own["predicted_n"]; reported && int(n) != len(g.ids) {
		s.probe.Warn(record.Warning{Code: "counts-differ",
			Text: fmt.Sprintf("llama-server counts %.0f tokens generated, and %d came", n, len(g.ids))})
	}
	if n, reported := own["prompt_n"]; reported && g.resumed == 0 &&
		int(n)+g.usage.CachedTokens != len(g.usage.PromptIDs) {
		s.probe.Warn(record.Warning{Code: "counts-differ",
			Text: fmt.Sprintf("llama-server counts %.0f tokens of the prompt evaluated and %d from a cache, and made %d of it",
				n, g.usage.CachedTokens, len(g.usage.PromptIDs))})
	}
}

// prepare gives the prompt's ids, once the slot is free and if there is room for what is asked.
func (s *session) prepare(ctx context.Context, srv *server, r engine.Request) ([]int, error) {
	if r.MaxTokens < 1 {
		return nil, engine.Fail(record.SetUp, "a generation of %d tokens was asked for", r.MaxTokens)
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
		return ids, &engine.Failure{Class: record.SetUp, Err: fault.New(fault.PromptTooLong,
			"shorten the prompt, ask for fewer tokens or give the model a larger context",
			"the prompt of %d tokens and %d tokens to generate do not fit in a context of %d", len(ids), r.MaxTokens,
			s.context)}
	}
	return ids, nil
}

// mostPrimed is how many tokens of prompts are kept.
const mostPrimed = 4 << 20

var _ engine.Primer = (*session)(nil)

// Prime has the server find the tokens of prompts.
func (s *session) Prime(ctx context.Context, prompts []string) error {
	srv, err := s.current()
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
	case srv.proc.Asked():
		return errClosed
	case errors.As(err, &failure):
		return err
	case wire.RefusalOf(err) != nil:
		return engine.Fail(record.Other, "%w", err)
	case srv.proc.Ended(time.Second): // the connection breaks a moment before the process is reaped
		if srv.proc.Asked() {
			return errClosed
		}
		srv.reported.Store(true)
		return srv.crashed()
	}
	return engine.Fail(record.Other, "generating with llama-server: %w", err)
}
