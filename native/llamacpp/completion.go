package llamacpp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/text/encoding/unicode"

	"llmparity/internal/engine"
	"llmparity/internal/models"
	"llmparity/internal/record"
	"llmparity/native/launch"
	"llmparity/native/logs"
)

// oneShotSession is a launch of the one-shot program. Each generation is a process, and a first one shows what the
// model needs.
type oneShotSession struct {
	config Config
	binary identity
	name   string // of the program
	probe  engine.Probe

	own     launch.Held[fitting]
	closing context.Context // ends with Close
	close   context.CancelFunc

	mu  sync.Mutex     // guards what Close may use at the same time
	run *completionRun // the latest

	info    record.EngineInfo // as last reported
	context int
	held    atomic.Int64 // tokens in the KV cache at the end of the last process; -1: unknown
}

// fitting is a model that the program could load.
type fitting struct {
	models.Model
	detach func() // of the source that holds the sizes from the log
}

// Load runs the program for one token. That shows whether it can load the model, how long this takes and which buffers
// it allocates. Each generation loads the model again.
func (s *oneShotSession) Load(ctx context.Context, m models.Model) error {
	if err := s.own.Free(); err != nil {
		return err
	}
	trial := engine.Request{Prompt: " ", MaxTokens: 1}
	run, err := s.start(ctx, m, trial, func(string, time.Time) {})
	if err != nil {
		return err
	}
	run.wait()
	err = s.broken(ctx, run, m, trial, !run.text.at.IsZero() && !run.begun.IsZero())
	if err = cmp.Or(m.Same(), err); err != nil { // the program has read the file by now
		return err
	}
	s.probe.Span(record.Span{Name: "model", Begin: run.Begun, End: run.begun,
		How: "separate process that generates one token: process start to its line that generation begins"})
	return s.describe(m, run)
}

// describe reports what runs, and offers the sizes from the log to the sampler.
func (s *oneShotSession) describe(m models.Model, run *completionRun) error {
	said := run.read.Said()
	s.config.ran(s.probe, said)
	s.context = said.Context
	if m.Context > 0 {
		s.context = min(m.Context, max(s.context, 1))
	}
	policy := s.config.policy(m, said)
	policy["context"] = strconv.Itoa(said.Context)
	policy["ignore_eos"] = "never chooses the end-of-text token; from there its text may differ from other engines'"
	policy["process"] = "one per generation, which loads the model; time to first token includes the load"
	s.info = s.binary.info(OneShotName, nil, policy)
	s.info.Layers, s.info.Vector = said.Layers(s.config.GPULayers), said.Vector
	s.describeRun(run)
	_, err := s.own.Start(func() (*fitting, error) {
		s.held.Store(0)
		if len(said.Buffers) == 0 {
			engine.Warn(s.probe, "sizes-untold", "%s's log does not report buffer sizes in a known format", s.name)
			return &fitting{m, func() {}}, nil
		}
		return &fitting{m, s.probe.Attach(sizes("completion", 0, said, func() int { return int(s.held.Load()) }))}, nil
	})
	return err
}

// describeRun reports a process's arguments if they changed.
func (s *oneShotSession) describeRun(run *completionRun) {
	if slices.Equal(run.shown, s.info.Args) {
		return
	}
	s.info.Args = run.shown
	reported := s.info
	s.probe.Event(record.Event{At: time.Now(), Engine: &reported})
}

// Unload forgets the model; no process holds it.
func (s *oneShotSession) Unload(context.Context) error {
	if m := s.own.Take(); m != nil {
		m.detach()
	}
	return nil
}

// Close ends the current process, if any.
func (s *oneShotSession) Close() error {
	s.close()
	s.mu.Lock()
	run := s.run
	s.mu.Unlock()
	if run != nil {
		<-run.Done()
		run.release()
	}
	if m := s.own.Close(); m != nil {
		m.detach()
	}
	return nil
}

// Generate starts a process and waits for it to end.
func (s *oneShotSession) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (
	record.Usage, error) {
	fits, done, err := s.own.Use()
	if err != nil {
		return record.Usage{}, err
	}
	defer done()
	m := fits.Model
	if r.Prompt == "" {
		return record.Usage{}, engine.Fail(record.SetUp, "the prompt has no tokens")
	}
	s.held.Store(-1)
	said := &engine.Text{Token: token}
	run, err := s.start(ctx, m, r, said.Piece)
	if err != nil {
		return record.Usage{}, err
	}
	run.wait()
	u := record.Usage{Sent: run.Begun, Returned: run.concluded, PromptTokens: run.prompted, Reported: run.figures}
	if u.PromptTokens > 0 {
		u.Reported["prompt_tokens"] = float64(u.PromptTokens)
	}
	_, timed := run.figures["eval_ms"]
	broken := s.broken(ctx, run, m, r, !run.text.at.IsZero() && timed)
	if broken == nil {
		u.Generated, u.Finish = run.generated(r.MaxTokens, said.N+len(run.text.held))
	}
	if ctx.Err() == nil {
		run.text.end(u.Finish == "stop")
	}
	u.Text, _ = unicode.UTF8.NewDecoder().String(said.String()) // replaces invalid bytes as llama-server does
	if broken != nil {
		u.Generated = said.N // all that is known if it failed
		if ctx.Err() != nil {
			u.Finish = "cancelled"
		}
	}
	u.Spans = run.spans(said, u.Generated)
	if broken != nil {
		return u, broken
	}
	return s.whole(u, run, said)
}

// whole completes the usage of a generation that did not fail.
func (s *oneShotSession) whole(u record.Usage, run *completionRun, said *engine.Text) (record.Usage, error) {
	if said.N == 0 && u.Finish == "length" {
		return u, engine.Fail(record.BadOutput, "%s generated %d tokens and printed no text", s.name, u.Generated)
	}
	rates(u.Reported)
	if odd := timesDiffer(said, u); odd != "" {
		engine.Warn(s.probe, "times-differ", "%s%s", s.name, odd)
	}
	held := u.PromptTokens + u.Generated
	if u.Finish == "length" {
		held-- // the last one is never evaluated
	}
	s.held.Store(int64(held))
	s.describeRun(run)
	return u, nil
}

// timesDiffer returns a warning if pieces were read too late: evaluating the tokens cannot take longer than receiving
// the text. It allows for a tenth, plus 20 ms because the clocks are coarse.
func timesDiffer(t *engine.Text, u record.Usage) string {
	ours, own := t.Last.Sub(t.First), time.Duration(u.Reported["eval_ms"]*float64(time.Millisecond))
	if t.N < 2 || own <= ours+ours/10+20*time.Millisecond {
		return ""
	}
	return fmt.Sprintf(" evaluated tokens for %s, but its text arrived within %s: the text was read late, so decode speed is too high",
		own.Round(time.Millisecond), ours.Round(time.Millisecond))
}

// broken returns why a process failed; nil if it did what it was started for.
func (s *oneShotSession) broken(ctx context.Context, run *completionRun, m models.Model, r engine.Request,
	whole bool) error {
	switch {
	case s.closing.Err() != nil:
		return errClosed
	case ctx.Err() != nil:
		return fmt.Errorf("running %s: %w", s.name, ctx.Err())
	case run.full.Load():
		return engine.TooLong("the prompt of %d tokens and %d tokens to generate do not fit in a context of %d",
			run.prompted, r.MaxTokens, s.context)
	case whole:
		return nil
	}
	err := s.why(run, m)
	switch class := engine.ClassOf(err); {
	case class == record.Crash, class == record.OOM:
		_ = s.Unload(ctx) // it never fails; the next generation needs another Load
	// The program ends if its context is full, but may not get round to logging it. Each token has at least one byte.
	case class != record.BadModel && s.context > 0 && len(r.Prompt)+1+r.MaxTokens > s.context:
		return engine.TooLong("the prompt and %d tokens to generate do not fit in a context of %d", r.MaxTokens,
			s.context)
	}
	return err
}

// why returns why a process ended unexpectedly. It does not flush its log before it ends, so the last lines may be
// missing.
func (s *oneShotSession) why(run *completionRun, m models.Model) error {
	words := said(run.Tail.Lines(200))
	err := notLoaded(s.name, m, words, run.Exit())
	switch last := logs.LastWords(words); {
	case err != nil:
		return err
	case signalled(run.Exit()):
		return engine.Fail(record.Crash, "%s crashed (%s); last output: %s", s.name, run.Exit(), last)
	case run.Err() != nil:
		return engine.Fail(record.Other, "%s failed (%s): %s", s.name, run.Exit(), last)
	default:
		return engine.Fail(record.BadOutput, "%s ended early; last output: %s", s.name, last)
	}
}
