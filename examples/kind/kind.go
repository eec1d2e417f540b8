// Package kind is an example of a built-in engine. It is complete: one line in package kinds adds it to llmparity, and
// it passes the suite that every engine passes. Its test does both.
//
// It computes with the reference implementation from llmparity's tests, in llmparity's own process, whose memory counts
// as its own: GGUF files with F32 weights, greedily, on one core.
package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/host/sample/proc"
	"llmparity/internal/models"
	"llmparity/internal/models/gguf"
	"llmparity/internal/models/tiny/reference"
	"llmparity/internal/models/tokenizer"
	"llmparity/internal/record"
)

// Kind is what llmparity knows about the engine.
var Kind = &engine.Kind{
	Name: "example", Title: "the example", Section: "example",
	Config: func() engine.Config { return new(Config) },
	New: func(_ string, c engine.Config, _ engine.Settings) engine.Engine {
		return &Engine{config: *c.(*Config)}
	},
	DTypes:  []string{"f32"},
	KVTypes: []string{"f32"},
	Runs:    func(dtype string) string { return "computes it in f32 from " + dtype + ", slowly" },
	Found: func(engine.Here) engine.Finding {
		return engine.Finding{Name: "example", Ready: true, Version: version, Can: "run small F32 models on one core"}
	},
}

const version = "1"

// Config has the settings for users: flags, keys of a section in plans, and properties of their schema.
type Config struct {
	Delay int // milliseconds before each token
}

// Fields returns the settings for users.
func (c *Config) Fields() []engine.Field {
	return []engine.Field{{To: &c.Delay, Flag: "example-delay", Key: "delay", Zero: "none",
		Help: "milliseconds that the example waits before each token"}}
}

// Check accepts everything.
func (*Config) Check() error { return nil }

// CheckPlan refuses a delay that must be a mistake.
func (c *Config) CheckPlan(engine.Settings) error {
	if c.Delay > 10_000 {
		return fmt.Errorf("delay: %d ms before each token exceeds 10000", c.Delay)
	}
	return nil
}

// Engine is the reference implementation.
type Engine struct{ config Config }

// Name returns the engine's name in records.
func (*Engine) Name() string { return Kind.Name }

// Caps returns what the engine can do.
func (*Engine) Caps() engine.Caps {
	return engine.Caps{IgnoreEOS: true, Resident: true, TokenIDs: true, Exact: true, Requests: 1,
		Isolation: record.OfServer}
}

// Check refuses a model that cannot be read.
func (*Engine) Check(_ context.Context, m models.Model) error {
	f, err := gguf.OpenReadable(m.Path)
	if err != nil {
		return engine.SetUp(err)
	}
	return f.Close()
}

// Open starts no process. A session that is Resident attaches its sources here, others in Load.
func (e *Engine) Open(_ context.Context, p engine.Probe) (engine.Session, error) {
	sources, err := proc.Sources(os.Getpid(), "llmparity", true)
	if err != nil {
		return nil, fmt.Errorf("sampling: %w", err)
	}
	s := &session{delay: time.Duration(e.config.Delay) * time.Millisecond, probe: p, closed: make(chan struct{})}
	for _, source := range sources {
		s.detach = append(s.detach, p.Attach(source))
	}
	p.Event(record.Event{Engine: &record.EngineInfo{Name: Kind.Name, Version: version,
		Policy: map[string]string{"weights_dtype": "f32", "kv_dtype": "f32", "threads": "1"}}})
	p.Event(record.Event{Device: &record.Device{Class: record.CPU, Name: "one core"}})
	return s, nil
}

type session struct {
	delay  time.Duration
	probe  engine.Probe
	detach []func()
	turn   engine.Turns
	closed chan struct{} // closed by Close

	mu        sync.Mutex
	model     *reference.Model // nil: none is loaded
	tokenizer *tokenizer.Tokenizer
	context   int
}

var errClosed = errors.New("the session is closed")

func (s *session) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Load reads the weights.
func (s *session) Load(_ context.Context, m models.Model) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isClosed():
		return errClosed
	case s.model != nil:
		return errors.New("a model is loaded; unload it first")
	}
	begin := time.Now()
	tokenizer, model, err := reference.Open(m.Path)
	if err != nil {
		return engine.SetUp(err)
	}
	s.model, s.tokenizer, s.context = model, tokenizer, m.Context
	s.probe.Span(record.Span{Name: "weights", Begin: begin, End: time.Now(), How: "around the call that reads them"})
	return nil
}

// Generate computes one token at a time.
func (s *session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	free, err := s.turn.Take()
	if err != nil {
		return record.Usage{}, err
	}
	defer free()
	s.mu.Lock()
	model, tokenizer, window := s.model, s.tokenizer, s.context
	s.mu.Unlock()
	if model == nil {
		return record.Usage{}, errors.New("no model is loaded")
	}
	u := record.Usage{PromptIDs: tokenizer.Prompt(r.Prompt), Finish: "length", Sent: time.Now()}
	if n := len(u.PromptIDs); n == 0 || n+r.MaxTokens > window {
		return u, engine.TooLong("%d tokens and %d to generate do not fit in a context of %d", n, r.MaxTokens, window)
	}
	sequence, last := model.Start(), len(u.PromptIDs)-1
	for _, id := range u.PromptIDs[:last] {
		if err := s.ended(ctx); err != nil {
			return u, err
		}
		sequence.Step(id, false)
	}
	var ids []int
	var first, now time.Time
	next := u.PromptIDs[last]
	for len(ids) < r.MaxTokens {
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
		case <-s.closed:
		}
		if err := s.ended(ctx); err != nil {
			return u, err
		}
		logits := sequence.Step(next, true)
		next, now = slices.Index(logits, slices.Max(logits)), time.Now()
		if ids = append(ids, next); len(ids) == 1 {
			first = now
		}
		token(record.Token{Index: len(ids) - 1, ID: next, At: now})
		if next == tokenizer.EOS && !r.IgnoreEOS {
			u.Finish = "stop"
			break
		}
	}
	const how = "around the reference's steps"
	u.Spans = []record.Span{{Name: record.Prefill, Begin: u.Sent, End: first, How: how},
		{Name: record.Decode, Begin: first, End: now, How: how}}
	u.Reported = map[string]float64{"steps": float64(last + len(ids))}
	u.Text, u.Returned = tokenizer.Decode(ids), time.Now()
	return u, nil
}

// ended says why a generation must end; nil: it may go on.
func (s *session) ended(ctx context.Context) error {
	if s.isClosed() {
		return errClosed
	}
	return context.Cause(ctx)
}

// Unload frees the weights.
func (s *session) Unload(context.Context) error {
	s.mu.Lock()
	s.model, s.tokenizer = nil, nil
	s.mu.Unlock()
	debug.FreeOSMemory() // else the next baseline would have them
	return nil
}

// Close ends a generation, unloads the model and detaches the sources.
func (s *session) Close() error {
	s.mu.Lock()
	if !s.isClosed() {
		close(s.closed)
		for _, detach := range s.detach {
			detach()
		}
	}
	s.mu.Unlock()
	return s.Unload(context.Background())
}
