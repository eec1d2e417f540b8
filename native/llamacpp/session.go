package llamacpp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/child"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/wire"
)

// errClosed is returned if the server was ended during a call or before it.
var errClosed = engine.Fail(record.Cancelled, "the llama-server session is closed")

// grace is how long a server may take to end. It has nothing to save.
const grace = 2 * time.Second

// session is one launch.
type session struct {
	config Config
	binary identity
	probe  engine.Probe

	own     launch.Held[server]
	held    cached
	model   models.Model // that the server has loaded
	context int          // limit for a prompt and its continuation
	givenUp atomic.Bool  // a slot may still be working on a cancelled request
}

// Load starts a server and waits until the model is loaded.
func (s *session) Load(ctx context.Context, m models.Model) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("loading %s: %w", m.Path, err)
	}
	return engine.Repeat(ctx, s.probe, "llama-server", func() error {
		return child.OnFreePort(func(port int) error { return s.start(ctx, m, port) })
	})
}

// start starts a server on a port and loads the model.
func (s *session) start(ctx context.Context, m models.Model, port int) error {
	srv, err := s.own.Start(func() (*server, error) { return startServer(s.config, s.binary, m, port, s.probe) })
	if err != nil {
		return err
	}
	props, err := srv.ready(ctx, m, s.probe)
	if err = cmp.Or(m.Same(), err); err == nil { // the server has read the file by now
		err = s.loaded(ctx, srv, m, props)
	}
	if err != nil {
		s.drop(srv, 0)
	}
	return err
}

// loaded reports what is running.
func (s *session) loaded(ctx context.Context, srv *server, m models.Model, props properties) error {
	said := srv.said(ctx)
	s.config.ran(s.probe, said)
	srv.Look()
	if n := s.config.slots(); props.Slots > 0 && props.Slots != n {
		return engine.Fail(record.SetUp, "llama-server has %d slots instead of %d", props.Slots, n)
	}
	s.model = m
	s.context = engine.Window(s.probe, "llama-server", m.Context, props.Settings.Context)
	s.givenUp.Store(false)
	policy := s.config.policy(m, said)
	policy["context"] = strconv.Itoa(props.Settings.Context)
	policy["ignore_eos"] = "after end of text: continues with a second request"
	info := s.binary.info(Name, srv.args, policy)
	info.Parts["build"], info.Layers, info.Vector = props.Build, said.Layers(s.config.GPULayers), said.Vector
	s.probe.Event(record.Event{At: time.Now(), Engine: &info})
	s.held.clear(s.config.slots())
	if len(said.Buffers) == 0 {
		engine.Warn(s.probe, "sizes-untold",
			"llama-server's log does not report buffer sizes in a known format")
		return nil
	}
	if !srv.Also(sizes("server", srv.PID(), said, s.held.tokens), s.probe.Attach) {
		return errClosed
	}
	return nil
}

// drop ends a server that the session still owns.
func (s *session) drop(srv *server, grace time.Duration) {
	srv.End(grace)
	s.own.Drop(srv)
}

// Unload ends the server, which releases its memory.
func (s *session) Unload(ctx context.Context) error {
	srv, err := s.own.Now()
	if err != nil {
		return nil // nothing is loaded
	}
	patience := grace
	if ctx.Err() != nil {
		patience = 0
	}
	crashed := srv.Ended(0) && !srv.Asked() // between requests
	s.drop(srv, patience)
	if crashed && !srv.reported.Load() && ctx.Err() == nil {
		return srv.crashed()
	}
	return nil
}

// Close ends the server at once, even during a load or a request.
func (s *session) Close() error {
	if srv := s.own.Close(); srv != nil {
		srv.End(0)
	}
	return nil
}

// Generate tokenises the prompt, untimed, and streams its continuation.
func (s *session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	srv, done, err := s.own.Use()
	if err != nil {
		return record.Usage{}, err
	}
	defer done()
	s.held.begin()
	slot, left := -1, 0 // until the generation completes
	defer func() { s.held.end(slot, left) }()
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
		slot, left = g.slot, g.cached
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

// prepare returns the prompt's ids once a slot is free, if the request fits.
func (s *session) prepare(ctx context.Context, srv *server, r engine.Request) ([]int, error) {
	if err := s.free(ctx, srv); err != nil {
		return nil, err
	}
	ids, err := r.IDs, error(nil)
	if ids == nil {
		ids, err = srv.client.tokenize(ctx, r.Prompt)
	}
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

// free waits until the server has noticed that a request was cancelled, that is, until no more slots are busy than
// there are other generations. If a server does not report its slots, it queues the next request, which is fine, too.
func (s *session) free(ctx context.Context, srv *server) error {
	for s.givenUp.Load() {
		busy, err := srv.client.busy(ctx)
		if err != nil && wire.RefusalOf(err) == nil {
			return fmt.Errorf("waiting for llama-server to be free: %w", err)
		}
		if busy <= s.own.Turns.Going()-1 {
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

// explain turns an error of the client into its cause: our own cancellation or the server's end.
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
	case srv.Ended(time.Second): // the connection breaks just before the process is reaped
		if srv.Asked() {
			return errClosed
		}
		srv.reported.Store(true)
		return srv.crashed()
	}
	return engine.Fail(record.Other, "generating with llama-server: %w", err)
}
