package run_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kit/check"
	"llmparity/internal/kit/fault"
	"llmparity/internal/models"
	"llmparity/internal/record"
)

// scripted is an engine that generates at once, except for what its functions do. It tests the runner's own rules.
type scripted struct {
	name   string
	caps   *engine.Caps // nil: those of a resident engine
	absent error        // of Check
	opened func(engine.Probe)
	// generate replaces atOnce.
	generate func(context.Context, engine.Request, func(record.Token)) (record.Usage, error)
	do       func(ctx context.Context, launch int) error // after each measured generation
	says     []int                                       // ids of its tokens; nil: 0, 1, 2 …
	score    func(context.Context, engine.Forced) error  // at the third token of a text; nil: it succeeds
	asked    []engine.Forced                             // texts to score

	prepared, launches int
	open               atomic.Int32
}

func (e *scripted) Name() string { return e.name }

func (e *scripted) Caps() engine.Caps {
	if e.caps != nil {
		return *e.caps
	}
	return engine.Caps{Resident: true, Isolation: record.OfLaunch}
}

func (e *scripted) Check(context.Context, models.Model) error { return e.absent }

func (e *scripted) Prepare(_ context.Context, _ models.Model, say func(string)) error {
	e.prepared++
	say("making something")
	return nil
}

func (e *scripted) Open(_ context.Context, p engine.Probe) (engine.Session, error) {
	e.launches++
	e.open.Add(1)
	if e.opened != nil {
		e.opened(p)
	}
	return &scriptedSession{engine: e}, nil
}

// atOnce generates what is requested in no time.
func (e *scripted) atOnce(ctx context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	u := record.Usage{PromptIDs: []int{1}, Sent: time.Now(), Finish: "length"}
	for i := range r.MaxTokens {
		id := i
		if e.says != nil {
			id = e.says[i]
		}
		token(record.Token{Index: i, ID: id, At: time.Now()})
	}
	if e.do != nil && r.MaxTokens > 1 { // the warm-up asks for one
		return u, e.do(ctx, e.launches)
	}
	return u, nil
}

type scriptedSession struct {
	engine *scripted
	closed bool
}

func (s *scriptedSession) Load(context.Context, models.Model) error { return nil }

func (s *scriptedSession) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (
	record.Usage, error) {
	if s.engine.generate != nil {
		return s.engine.generate(ctx, r, token)
	}
	return s.engine.atOnce(ctx, r, token)
}

// Score finds every token as likely.
func (s *scriptedSession) Score(ctx context.Context, f engine.Forced, each func(record.Score)) error {
	s.engine.asked = append(s.engine.asked, f)
	for i, id := range f.IDs {
		if i == 2 && s.engine.score != nil {
			if err := s.engine.score(ctx, f); err != nil {
				return err
			}
		}
		each(record.Score{Position: i, Forced: id, LogProb: -1,
			Top: []record.Candidate{{ID: id, LogProb: -1}, {ID: id + 50, LogProb: -2}}})
	}
	return nil
}

func (s *scriptedSession) Unload(context.Context) error { return nil }

func (s *scriptedSession) Close() error {
	if !s.closed {
		s.closed = true
		s.engine.open.Add(-1)
	}
	return nil
}

func options(t *testing.T, engines ...engine.Engine) trial {
	p := plan.Plan{Name: "test", Model: "m", Engines: names(engines), Prompts: plan.Texts("p"), MaxTokens: 4,
		Context: 16, Warmup: plan.Warmup{Launches: 1, Tokens: 1}, Repetitions: 3, Timeout: plan.Duration(time.Minute)}
	return trial{Plan: p, Options: run.Options{Out: t.TempDir()},
		Parts: run.Parts{Engines: engines, Model: models.Model{Model: record.Model{Name: "m"}}}}
}

func names(engines []engine.Engine) (out []string) {
	for _, e := range engines {
		out = append(out, e.Name())
	}
	return out
}

func do(t *testing.T, ctx context.Context, o trial) (*record.Run, error) {
	t.Helper()
	dir, err := execute(ctx, o)
	r, openErr := record.Open(dir)
	if openErr != nil {
		t.Fatalf("%v (the run said: %v)", openErr, err)
	}
	return r, err
}

// whole executes a run that must succeed.
func whole(t *testing.T, o trial) *record.Run {
	t.Helper()
	r, err := do(t, t.Context(), o)
	check.Err(t, err)
	return r
}

// at lets an engine do something in its nth measured generation only.
func at(nth int, do func(context.Context) error) func(context.Context, int) error {
	n := 0
	return func(ctx context.Context, _ int) error {
		if n++; n == nth {
			return do(ctx)
		}
		return nil
	}
}

func crashes(context.Context) error { return engine.Fail(record.Crash, "it crashed") }

// hangs until its context is done.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// interrupts ends the run as a user would.
func interrupts(cancel context.CancelCauseFunc) func(context.Context) error {
	return func(ctx context.Context) error {
		cancel(fault.New(fault.Interrupted, "", "interrupted"))
		return hangs(ctx)
	}
}

// outcomes returns each launch's error in turn; later launches succeed.
func outcomes(list ...error) func(context.Context, int) error {
	return func(_ context.Context, launch int) error {
		if launch > len(list) {
			return nil
		}
		return list[launch-1]
	}
}

func TestPanicClosesSession(t *testing.T) {
	a := &scripted{name: "a", do: func(context.Context, int) error { panic("bug") }}
	o := options(t, a)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = execute(t.Context(), o)
	}()
	if a.open.Load() != 0 {
		t.Error("a session stays open after a panic")
	}
}

func TestUnwritableFolderIsRefusedFirst(t *testing.T) {
	a := &scripted{name: "a"}
	o := options(t, a)
	o.Out = "/dev/null/results"
	_, err := execute(t.Context(), o)
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Unwritable || a.launches != 0 {
		t.Errorf("%v after %d launches", err, a.launches)
	}
}

func TestEngineLimitsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var prompts []string
		e := &scripted{name: "a", caps: &engine.Caps{PromptCache: true, Requests: 1, Isolation: record.OfServer}}
		e.generate = func(_ context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
			prompts = append(prompts, r.Prompt)
			token(record.Token{ID: record.NoID, At: time.Now()}) // a piece of text
			return record.Usage{PromptTokens: 3, Sent: time.Now(), Finish: "stop",
				Generated: r.MaxTokens - r.MaxTokens/4}, nil
		}
		o := options(t, e)
		o.Plan.Prompts, o.Plan.Repetitions, o.Plan.Warmup.Launches = plan.Texts("one two three", "one"), 1, 0
		o.Plan.Chat = true
		o.Expected = map[string][]int{"one": {9}}
		r := whole(t, o)
		if want := []string{"two three one", "one two three", "So one", "one"}; !slices.Equal(prompts, want) {
			t.Errorf("prompts %q, want %q: measured prompts must not be in the cache", prompts, want)
		}
		if c := r.Cells[0]; !c.StopsAtEnd || !c.NoTokenIDs || !c.Pieces || c.PromptCache != record.CacheOn ||
			c.Isolation != record.OfServer || !c.Chat {
			t.Errorf("cell %+v", c)
		}
		if n := warned(r, 0, "length"); n != 1 { // the warm-up has its one token
			t.Errorf("%d warnings of the length: %+v", n, r.Attempts[0].Warnings)
		}
	})
}
