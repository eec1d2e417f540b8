package protocol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
	"llmparity/native/launch"
)

// session is one launch of the program.
type session struct {
	engine       *Engine
	probe        engine.Probe
	path, sha256 string
	turn         engine.Turns

	own launch.Held[conn]

	hello    message
	said     map[string]bool // warnings that are given once
	reported bool            // an error of a call has told why the program is of no use, or that call was cancelled
	loaded   bool
	context  int // what a prompt and its continuation may come to; 0: not known
}

// running gives the program, started if there is none.
func (s *session) running(ctx context.Context) (*conn, error) {
	if c, err := s.own.Now(); err == nil {
		return c, nil
	}
	argv := append([]string{s.path}, s.engine.config.Argv[1:]...)
	s.reported = false
	c, err := s.own.Start(func() (*conn, error) {
		return start(s.engine.Name(), argv, s.engine.config.Silence, s.probe)
	})
	if err != nil {
		return nil, err
	}
	if err := s.greet(ctx, c); err != nil {
		s.drop(c, 0)
		return nil, err
	}
	return c, nil
}

// greet lets the engine say what it is.
func (s *session) greet(ctx context.Context, c *conn) error {
	got, _, err := c.ask(ctx, opHello, 0, func(id int) any {
		return helloRequest{ID: id, Op: opHello, Protocol: Version, Clock: clockName}
	}, nothing)
	if err != nil {
		return helloFault(ctx, c, err)
	}
	if got.Protocol != Version {
		do := seeProtocol
		if got.Protocol > Version {
			do = "take a newer llmparity, or let it speak the version it is asked for"
		}
		return &engine.Failure{Class: record.BadOutput, Err: fault.New(fault.BadProtocol, do,
			"%s speaks version %d of the protocol, and this is version %d", c.name, got.Protocol, Version)}
	}
	if err := got.checkHello(clockName); err != nil {
		return &engine.Failure{Class: record.BadOutput, Err: fault.New(fault.BadProtocol, seeProtocol,
			"%s does not say hello right: %v", c.name, err)}
	}
	if err := s.engine.met(got.message); err != nil {
		return err
	}
	s.hello, s.said = got.message, map[string]bool{}
	c.mu.Lock()
	c.caps = got.Caps
	c.mu.Unlock()
	s.probe.Event(record.Event{At: time.Now(), Device: deviceOf(*got.Device)})
	return nil
}

// helloFault is for an engine that answers hello with an error: its own reason is told.
func helloFault(ctx context.Context, c *conn, err error) error {
	var known *fault.Error
	if ctx.Err() != nil || errors.As(err, &known) || errors.Is(err, errClosed) {
		return err
	}
	return &engine.Failure{Class: engine.ClassOf(err), Err: fault.New(fault.BadProtocol, seeProtocol,
		"%s does not say hello: %v", c.name, err)}
}

func nothing(*call, received) error { return nil }

// Load asks for the model, of a program that was started by Open, or, after one that had to be ended, by now.
func (s *session) Load(ctx context.Context, m engine.Model) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("loading %s: %w", cmp.Or(m.Path, m.Name), err)
	}
	if err := m.Same(); err != nil {
		return err
	}
	if s.loaded {
		return errors.New(s.engine.Name() + " has a model already; unload it first")
	}
	c, err := s.running(ctx)
	if err != nil {
		return err
	}
	var stages stages
	got, k, err := c.ask(ctx, opLoad, 0, func(id int) any {
		return loadRequest{ID: id, Op: opLoad,
			Model: model{Name: m.Name, Path: m.Path, Format: cmp.Or(m.Format, ggufFormat),
				SHA256: m.SHA256, Context: m.Context}}
	}, stages.add)
	if err == nil {
		err = m.Same() // it has been read from the path by now
	}
	if err != nil {
		s.tell(ctx, c)
		return ended(ctx, "loading", err)
	}
	for _, span := range stages.spans(k.sent, got.at) {
		s.probe.Span(span)
	}
	s.isLoaded(m, got.message)
	c.Look()
	return nil
}

// stages are what a load went through, by the lines that tell of them.
type stages []record.Span

func (s *stages) add(_ *call, r received) error {
	if r.Event == evStage {
		*s = append(*s, record.Span{Name: cut(tidy(r.Stage), 40), Begin: r.at})
	}
	return nil
}

func (s stages) spans(sent, done time.Time) []record.Span {
	if len(s) == 0 {
		return []record.Span{{Name: "model", Begin: sent, End: done,
			How: "request written, to the line that says done read"}}
	}
	for i := range s {
		s[i].End, s[i].How = done, "its line read, to the next stage's or the one that says done"
		if i+1 < len(s) {
			s[i].End = s[i+1].Begin
		}
	}
	return s
}

// isLoaded tells what now runs.
func (s *session) isLoaded(m engine.Model, got message) {
	s.loaded = true
	s.context = launch.Window(s.probe, s.engine.Name(), m.Context, cmp.Or(got.Context, m.Context))
	policy := map[string]string{"context": strconv.Itoa(cmp.Or(got.Context, m.Context)),
		"token_times": "when its lines are read"}
	if s.hello.Clock != "" {
		policy["token_times"] = "its own, of CLOCK_MONOTONIC"
	}
	for _, said := range []map[string]string{s.hello.Policy, got.Policy} {
		kept, left := words(said)
		maps.Copy(policy, kept)
		s.cutShort("policy", left)
	}
	s.probe.Event(record.Event{At: time.Now(), Engine: &record.EngineInfo{
		Name: s.engine.Name(), Version: tidy(s.hello.Version), Path: s.path, SHA256: s.sha256,
		Args:   s.engine.config.Argv[1:],
		Parts:  map[string]string{"engine": tidy(s.hello.Name), "protocol": strconv.Itoa(Version)},
		Policy: policy,
	}})
}

// current is the program that has a model.
func (s *session) current() (*conn, error) {
	c, err := s.own.Now()
	if err == nil && !s.loaded {
		err = errors.New(s.engine.Name() + " has no model; load one first")
	}
	return c, err
}

// tell notes that a call returns an error. Where the program goes on, its end is still news.
func (s *session) tell(ctx context.Context, c *conn) {
	s.reported = s.reported || c.why() != nil || ctx.Err() != nil
}

// Unload asks for the model's memory. A program that is of no use any more, or goes on with what was cancelled, is
// ended instead; one that ended by itself while nothing was asked of it has not been told of.
func (s *session) Unload(ctx context.Context) error {
	s.loaded = false
	c, err := s.own.Now()
	if err != nil {
		return nil // nothing runs
	}
	if why := c.why(); why != nil || ctx.Err() != nil || !c.idle(ctx) {
		s.drop(c, 0)
		if s.reported || ctx.Err() != nil || errors.Is(why, errClosed) {
			return nil
		}
		return why
	}
	_, _, err = c.ask(ctx, opUnload, 0, func(id int) any { return plainRequest{ID: id, Op: opUnload} }, nothing)
	if err != nil {
		s.drop(c, 0)
		return ended(ctx, "unloading", err)
	}
	return nil
}

// drop ends a program that is still the session's.
func (s *session) drop(c *conn, grace time.Duration) {
	c.close(grace)
	s.own.Drop(c)
}

// Close ends the program: at once if it is at work.
func (s *session) Close() error {
	if c := s.own.Close(); c != nil {
		c.close(c.patience())
	}
	return nil
}

// ended tells what lies behind an error: our own doing, or the engine's.
func ended(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	return err
}
