// Package kind is an example of a built-in engine. It is complete: one line in package kinds adds it to llmparity. Its
// test builds llmparity with that line.
//
// It computes with the reference implementation from llmparity's tests, in llmparity's own process: GGUF files with
// F32 weights, greedily, on one core. Its memory is not sampled.
package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/gguf"
	"llmparity/internal/record"
	"llmparity/internal/tiny/reference"
	"llmparity/internal/tokenizer"
)

// Kind is what llmparity knows about the engine.
var Kind = &engine.Kind{
	Name: "example", Title: "the example", Section: "example",
	Config: func() engine.Config { return new(Config) },
	New: func(_ string, c engine.Config, _ engine.Settings) engine.Engine {
		return &Engine{config: *c.(*Config)}
	},
	DTypes:  []string{"f32"},
	KVTypes: func(string) []string { return []string{"f32"} },
	Runs:    func(dtype string) string { return "computes it in f32 from " + dtype + ", slowly" },
}

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
func (*Engine) Check(_ context.Context, m engine.Model) error {
	f, err := gguf.OpenReadable(m.Path)
	if err != nil {
		return engine.SetUp(err)
	}
	return f.Close()
}

// Open starts no process; the engine runs in llmparity's own.
func (e *Engine) Open(_ context.Context, p engine.Probe) (engine.Session, error) {
	p.Event(record.Event{Engine: &record.EngineInfo{Name: Kind.Name, Version: "1"}})
	return &session{delay: time.Duration(e.config.Delay) * time.Millisecond}, nil
}

type session struct {
	delay time.Duration
	turn  engine.Turns

	mu        sync.Mutex
	model     *reference.Model
	tokenizer *tokenizer.Tokenizer
	context   int
}

// Load reads the weights.
func (s *session) Load(_ context.Context, m engine.Model) error {
	tokenizer, model, err := reference.Open(m.Path)
	if err != nil {
		return engine.SetUp(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model, s.tokenizer, s.context = model, tokenizer, m.Context
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
	sequence := model.Start()
	for _, id := range u.PromptIDs[:len(u.PromptIDs)-1] {
		sequence.Step(id, false)
	}
	var ids []int
	next := u.PromptIDs[len(u.PromptIDs)-1]
	for len(ids) < r.MaxTokens {
		select {
		case <-ctx.Done():
			return u, context.Cause(ctx)
		case <-time.After(s.delay):
		}
		logits := sequence.Step(next, true)
		next = slices.Index(logits, slices.Max(logits))
		ids = append(ids, next)
		token(record.Token{Index: len(ids) - 1, ID: next, At: time.Now()})
		if next == tokenizer.EOS && !r.IgnoreEOS {
			u.Finish = "stop"
			break
		}
	}
	u.Text, u.Returned = tokenizer.Decode(ids), time.Now()
	return u, nil
}

// Unload frees the weights.
func (s *session) Unload(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model, s.tokenizer = nil, nil
	return nil
}

// Close unloads the model.
func (s *session) Close() error { return s.Unload(context.Background()) }
