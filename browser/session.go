package browser

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/record"
)

// grace is how long a cancelled call waits for the page to stop. A step of a large model on a slow adapter takes
// longer: the page then goes on alone, and the next call waits for it.
const grace = 2 * time.Second

// session is one browser with one page, which has the engine on its own thread or in a worker.
type session struct {
	webllm *WebLLM
	tab    *tab
	probe  engine.Probe
	path   string // of the browser
	bundle string // SHA-256
	device record.Device

	turn    engine.Turn   // of generations
	loaded  bool          // a model is
	context int           // its window
	pending chan struct{} // closed when the page is done with a call that was given up; nil when there is none

	once     sync.Once
	closeErr error
}

// introduce tells the probe what is there before any model: engine, device, clock, processes.
func (s *session) introduce(ctx context.Context) error {
	device, err := s.tab.device(ctx, s.webllm.config.Adapter)
	if err != nil {
		return err
	}
	s.device = device
	s.webllm.met(device)
	s.tab.clock = pageClock{anchor: time.Now()}
	clock, err := s.tab.measureClock(ctx, "start")
	if err != nil {
		return err
	}
	s.tab.clock.offset = clock.OffsetNS
	s.event(record.Event{Engine: s.info(nil)})
	s.event(record.Event{Device: &device})
	for _, w := range s.webllm.config.Adapter.unmet(device) {
		s.probe.Warn(w)
	}
	s.event(record.Event{Clock: &clock})
	if err := s.tab.collect(ctx); err != nil {
		return err
	}
	if err := s.tab.attach(ctx, s.probe); err != nil {
		return err
	}
	return s.tab.attachPage(ctx, s.probe)
}

func (s *session) event(e record.Event) {
	e.At = time.Now()
	s.probe.Event(e)
}

// errLoaded refuses a second model: what it and the first one take could not be told apart.
var errLoaded = errors.New("a model is loaded already; unload it before another is loaded")

// Load creates WebLLM's engine and loads the model into it.
func (s *session) Load(ctx context.Context, m engine.Model) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	if s.loaded {
		return errLoaded
	}
	defer s.tab.attachNew(ctx, s.probe, watchLoad)()
	defer s.tab.guard()()
	p, err := s.webllm.packageOf(ctx, m, func(string) {})
	if err != nil {
		return err
	}
	if p.DType == F16 {
		if err := needF16(s.device); err != nil {
			return err
		}
	}
	failed := func(err error) error {
		return fmt.Errorf("loading %s into %s: %w%s", m.Name, s.webllm.config.Bundle, err, s.tab.server.lacks())
	}
	if err := s.webllm.intact(ctx, p); err != nil {
		return failed(err)
	}
	base, err := s.tab.server.offer(p)
	if err != nil {
		return err
	}
	s.knowLayout(p)
	marks, err := background(ctx, s, "llmparity.giveUp()", func(ctx context.Context) (map[string]float64, error) {
		return callWith[map[string]float64](ctx, s.tab, "llmparity.load", map[string]any{
			"model": base + "/model/", "library": base + "/library.wasm", "id": p.ID, "window": p.Context,
			"overrides": p.Overrides,
		})
	})
	if err != nil {
		return failed(err)
	}
	s.loaded, s.context = true, p.Context
	for _, span := range stages(marks, s.tab.clock) {
		s.probe.Span(span)
	}
	if err := s.tab.ledger.tellHistory(ctx); err != nil {
		return err
	}
	s.event(record.Event{Engine: s.info(&p)})
	for _, w := range slices.Concat(p.Warnings, p.Library.otherAdapter(s.device)) {
		s.probe.Warn(w)
	}
	return s.tab.attach(ctx, s.probe)
}

// Generate completes a raw prompt. WebLLM would let a second one wait, and its waiting would be in its figures.
func (s *session) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	free, err := s.turn.Take()
	if err != nil {
		return record.Usage{}, err
	}
	defer free()
	if err := s.settle(ctx); err != nil {
		return record.Usage{}, err
	}
	defer s.tab.attachNew(ctx, s.probe, watchGenerate)()
	defer s.tab.guard()()
	g := generation{clock: s.tab.clock, token: token}
	answer, err := s.generate(ctx, r, &g)
	if err != nil {
		return g.usage(answer), fmt.Errorf("generating with WebLLM: %w", err)
	}
	if answer.TooLong > 0 {
		return g.usage(answer), fault.New(
			fault.PromptTooLong, "shorten the prompt, ask for fewer tokens or give a larger context",
			"the prompt of %d tokens and %d tokens to generate do not fit in a context of %d", answer.TooLong,
			r.MaxTokens, answer.Context)
	}
	return g.usage(answer), nil
}

// generate runs the request and hands over its tokens as they come, and the last of them before it returns.
func (s *session) generate(ctx context.Context, r engine.Request, g *generation) (answer, error) {
	g.sent = time.Now()
	return whileReporting(s, func() (answer, error) {
		return background(ctx, s, "llmparity.interrupt()", func(ctx context.Context) (answer, error) {
			return callWith[answer](ctx, s.tab, "llmparity.generate", map[string]any{
				"prompt": r.Prompt, "maxTokens": r.MaxTokens, "temperature": r.Temperature, "ignoreEOS": r.IgnoreEOS,
			})
		})
	}, func() { g.hand(s.tab.take()) })
}

// whileReporting makes a long call, and has what the page tells meanwhile taken as it comes, the last of it before this
// returns.
func whileReporting[T any](s *session, long func() (T, error), take func()) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := long()
		done <- result{v, err}
	}()
	for {
		select {
		case <-s.tab.news:
			take()
		case r := <-done:
			take()
			return r.value, r.err
		}
	}
}

// background runs a long call to the page. When ctx ends, the page is told to stop by stop, and the call is waited for
// a little; if the page is not done by then, the call goes on by itself and s.pending says when it is.
func background[T any](ctx context.Context, s *session, stop string, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done, pending := make(chan result, 1), make(chan struct{})
	go func() {
		defer close(pending)
		v, err := f(s.tab.chrome.ctx)
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	s.pending = pending
	limit, cancel := context.WithTimeout(s.tab.chrome.ctx, grace)
	defer cancel()
	var value T
	if _, err := call[any](limit, s.tab, stop); err == nil {
		select {
		case r := <-done:
			value = r.value
		case <-limit.Done():
		}
	}
	if lost := s.tab.lost(); lost != nil {
		return value, lost
	}
	return value, ctx.Err()
}

// settle waits for a call that was given up, and refuses when the page is gone.
func (s *session) settle(ctx context.Context) error {
	if s.pending != nil {
		select {
		case <-s.pending:
			s.pending = nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for the page to end what was cancelled: %w", ctx.Err())
		}
	}
	s.tab.forget()
	return s.tab.lost()
}

// Unload frees the model and waits until the GPU process has done so too. It also measures the page's clock for the
// last time.
func (s *session) Unload(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	defer s.tab.guard()()
	if _, err := call[any](ctx, s.tab, "llmparity.unload()"); err != nil {
		return fmt.Errorf("unloading: %w", err)
	}
	s.loaded = false
	if err := s.tab.collect(ctx); err != nil {
		return err
	}
	clock, err := s.tab.measureClock(ctx, "end")
	if err != nil {
		return err
	}
	s.event(record.Event{Clock: &clock})
	if w, ok := s.tab.clock.drifted(clock); ok {
		s.probe.Warn(w)
	}
	return nil
}

// Close ends the browser and the server and removes what they left.
func (s *session) Close() error {
	s.once.Do(func() {
		s.tab.processes.detach()
		s.closeErr = errors.Join(s.tab.chrome.close(), s.tab.server.close())
	})
	return s.closeErr
}
