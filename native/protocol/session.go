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
	"llmparity/internal/host/machine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
	"llmparity/native/launch"
)

// session is one launch of the program.
type session struct {
	engine       *Engine
	probe        engine.Probe
	path, sha256 string

	own     launch.Held[conn]
	held    held
	batches batches

	hello    message
	said     map[string]bool // warnings already given
	reported bool            // a call has returned why the program is broken, or was cancelled
	loaded   bool
	context  int // limit for a prompt and its continuation; 0: unknown
}

// running returns the program, and starts it if necessary.
func (s *session) running(ctx context.Context) (*conn, error) {
	if c, err := s.own.Now(); err == nil {
		return c, nil
	}
	argv := append([]string{s.path}, s.engine.config.Argv[1:]...)
	s.reported = false
	c, err := s.own.Start(func() (*conn, error) {
		return start(s.engine.Name(), argv, s.engine.config, s.probe)
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

// greet sends hello and checks the answer.
func (s *session) greet(ctx context.Context, c *conn) error {
	offer := fields{"protocol": Version}
	if clockName != "" {
		offer["clock"] = clockName
	}
	got, _, err := c.ask(ctx, opHello, offer, nil)
	switch _, known := errors.AsType[*fault.Error](err); {
	case err == nil:
	case known, ctx.Err() != nil, errors.Is(err, errClosed):
		return err
	default: // the engine's own reason
		return c.wrong(opHello, engine.ClassOf(err), "hello failed: %s", err)
	}
	if got.Protocol != Version {
		do := seeProtocol
		if got.Protocol > Version {
			do = "use a newer llmparity, or make the engine speak the requested version"
		}
		return &engine.Failure{Class: record.BadOutput, Err: fault.New(fault.BadProtocol, do,
			"%s speaks version %d of the protocol, llmparity speaks version %d", c.name, got.Protocol, Version)}
	}
	if err := got.checkHello(clockName); err != nil {
		return c.wrong(opHello, record.BadOutput, "invalid answer to hello: %v", err)
	}
	if err := s.engine.met(got.message); err != nil {
		return err
	}
	s.hello, s.said = got.message, map[string]bool{}
	d := record.Device{Class: got.Device.Class, Name: cmp.Or(tidy(got.Device.Name), "unknown"),
		Asked: tidy(got.Device.Asked)}
	if got.Device.Name == "" && d.Class == record.CPU {
		d.Name = machine.CPU()
	}
	d.Detail, _ = words(got.Device.Detail) // the first ones suffice
	s.probe.Event(record.Event{At: time.Now(), Device: &d})
	return nil
}

// Load requests the model, from the program that Open started, or from a new one if that had to be ended.
func (s *session) Load(ctx context.Context, m models.Model) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("loading %s: %w", cmp.Or(m.Path, m.Name), err)
	}
	if s.loaded {
		return errors.New(s.engine.Name() + " already has a model; unload it first")
	}
	c, err := s.running(ctx)
	if err != nil {
		return err
	}
	path, err := s.engine.config.In.Path(ctx, m.Path)
	if err != nil {
		return err
	}
	var stages stages
	asked := fields{"model": model{m.Name, path, cmp.Or(m.Format, models.GGUF), m.SHA256, m.Context}}
	if of := s.engine.config; of.DType != "" {
		asked["dtype"] = of.DType
	}
	if of := s.engine.config; of.Threads > 0 {
		asked["threads"] = of.Threads
	}
	got, k, err := c.ask(ctx, opLoad, asked, stages.add)
	if err = cmp.Or(m.Same(), err); err != nil { // the engine has read the file by now
		s.tell(ctx, c)
		return ended(ctx, "loading", err)
	}
	for _, span := range stages.spans(k.sent, got.at) {
		s.probe.Span(span)
	}
	s.isLoaded(m, got.message)
	s.held.set(got.Held)
	s.held.attach("engine", c.PID(), s.probe.Attach)
	c.Look()
	return nil
}

// stages are the stages of a load, as the engine reports them.
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
			How: "request written to done read"}}
	}
	for i := range s {
		s[i].End, s[i].How = done, "stage read to next stage or done read"
		if i+1 < len(s) {
			s[i].End = s[i+1].Begin
		}
	}
	return s
}

// isLoaded reports what is running.
func (s *session) isLoaded(m models.Model, got message) {
	s.loaded = true
	s.context = engine.Window(s.probe, s.engine.Name(), m.Context, cmp.Or(got.Context, m.Context))
	policy := map[string]string{"context": strconv.Itoa(cmp.Or(got.Context, m.Context)),
		"token_times": "when lines are read"}
	if s.hello.Clock != "" {
		policy["token_times"] = "by the engine, CLOCK_MONOTONIC"
	}
	for _, said := range []map[string]string{s.hello.Policy, got.Policy} {
		kept, left := words(said)
		maps.Copy(policy, kept)
		if left > 0 {
			s.warnOnce("too-many-names", "%s reports more than %d names in \"policy\": %d are dropped", s.engine.Name(),
				maxNames, left)
		}
	}
	s.engine.config.In.Describe(policy)
	s.probe.Event(record.Event{At: time.Now(), Engine: &record.EngineInfo{
		Name: s.engine.Name(), Version: tidy(s.hello.Version), Path: s.path, SHA256: s.sha256,
		Args: s.engine.config.Argv[1:], Parts: s.parts(),
		Policy: policy, Weights: got.Weights,
	}})
	var rows []ran.Row
	if asked := s.engine.config.Threads; asked > 0 {
		has, _ := strconv.Atoi(policy["threads"]) // 0: unknown
		rows = []ran.Row{ran.With(ran.Threads, asked, has, `"threads" in the engine's "policy"`)}
	}
	for _, r := range got.Ran[:min(len(got.Ran), maxNames)] {
		rows = append(rows, ran.As(tidy(r.What), tidy(r.Asked), tidy(r.Got), tidy(r.Evidence)))
	}
	if len(rows) > 0 {
		s.probe.Event(record.Event{At: time.Now(), Ran: rows})
	}
}

// parts are the engine's own name and parts, and what the configuration adds.
func (s *session) parts() map[string]string {
	parts, _ := words(s.hello.Parts) // the first ones suffice
	parts["engine"], parts["protocol"] = tidy(s.hello.Name), strconv.Itoa(Version)
	maps.Copy(parts, s.engine.config.Parts)
	return parts
}

// warnOnce gives each warning once per program.
func (s *session) warnOnce(code, format string, args ...any) {
	if !s.said[code] {
		s.said[code] = true
		engine.Warn(s.probe, code, format, args...)
	}
}

// use takes a turn and returns the program if it has a model.
func (s *session) use() (c *conn, done func(), err error) {
	c, done, err = s.own.Use()
	if err == nil && !s.loaded {
		done()
		err = errors.New(s.engine.Name() + " has no model loaded; load one first")
	}
	return c, done, err
}

// tell notes that a call has returned an error, so that Unload does not repeat it.
func (s *session) tell(ctx context.Context, c *conn) {
	s.reported = s.reported || c.why() != nil || ctx.Err() != nil
}

// Unload requests that the model be released. A program that is broken, or still working on a cancelled request, is
// ended instead. If it ended by itself between requests, Unload returns that error.
func (s *session) Unload(ctx context.Context) error {
	s.loaded = false
	defer s.held.release()
	c, err := s.own.Now()
	if err != nil {
		return nil // nothing is running
	}
	if why := c.settle(ctx, opUnload, grace); why != nil || ctx.Err() != nil {
		s.drop(c, 0)
		if s.reported || ctx.Err() != nil || errors.Is(why, errClosed) {
			return nil
		}
		return why
	}
	_, _, err = c.ask(ctx, opUnload, nil, nil)
	if err != nil {
		s.drop(c, 0)
		return ended(ctx, "unloading", err)
	}
	return nil
}

// drop ends a program that the session still owns.
func (s *session) drop(c *conn, grace time.Duration) {
	c.close(grace)
	s.own.Drop(c)
}

// Close ends the program, at once if it is busy or broken.
func (s *session) Close() error {
	defer s.held.release()
	if c := s.own.Close(); c != nil {
		patience := grace
		if c.call.Load() != nil || c.why() != nil {
			patience = 0
		}
		c.close(patience)
	}
	return nil
}

// ended turns an error into our own cancellation if there was one.
func ended(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	return err
}
