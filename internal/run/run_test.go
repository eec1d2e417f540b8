package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/engine"
	"llmparity/internal/fault"
	"llmparity/internal/plan"
	"llmparity/internal/record"
	"llmparity/internal/run"
)

// scripted is an engine that generates at once, but for what do says of a launch. The runner's own rules are tested on
// it; what real engines do is tested where they live.
type scripted struct {
	name     string
	prepared int
	launches int
	open     atomic.Int32
	do       func(ctx context.Context, launch int) error
}

func (e *scripted) Name() string { return e.name }
func (e *scripted) Caps() engine.Caps {
	return engine.Caps{Resident: true, Isolation: record.OfLaunch}
}
func (e *scripted) Check(context.Context, engine.Model) error { return nil }

func (e *scripted) Prepare(_ context.Context, _ engine.Model, say func(string)) error {
	e.prepared++
	say("making something")
	return nil
}

func (e *scripted) Open(context.Context, engine.Probe) (engine.Session, error) {
	e.launches++
	e.open.Add(1)
	return &scriptedSession{engine: e}, nil
}

type scriptedSession struct {
	engine *scripted
	closed bool
}

func (s *scriptedSession) Load(context.Context, engine.Model) error { return nil }

func (s *scriptedSession) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (
	record.Usage, error) {
	u := record.Usage{PromptIDs: []int{1}, Sent: time.Now(), Finish: "length"}
	for i := range r.MaxTokens {
		token(record.Token{Index: i, ID: i, At: time.Now()})
	}
	if s.engine.do != nil && r.MaxTokens > 1 { // the warm-up asks for one
		return u, s.engine.do(ctx, s.engine.launches)
	}
	return u, nil
}

func (s *scriptedSession) Unload(context.Context) error { return nil }

func (s *scriptedSession) Close() error {
	if !s.closed {
		s.closed = true
		s.engine.open.Add(-1)
	}
	return nil
}

func options(t *testing.T, engines ...engine.Engine) run.Options {
	p := plan.Plan{Name: "test", Model: "m", Engines: names(engines), Prompts: []string{"p"}, MaxTokens: 4, Context: 16,
		Warmup: plan.Warmup{Launches: 1, Tokens: 1}, Repetitions: 3, Timeout: plan.Duration(time.Minute)}
	return run.Options{Plan: p, Out: t.TempDir(),
		Parts: run.Parts{Engines: engines, Model: engine.Model{Model: record.Model{Name: "m"}}}}
}

func names(engines []engine.Engine) (out []string) {
	for _, e := range engines {
		out = append(out, e.Name())
	}
	return out
}

func do(t *testing.T, ctx context.Context, o run.Options) (*record.Run, error) {
	t.Helper()
	dir, err := run.Do(ctx, o)
	r, openErr := record.Open(dir)
	if openErr != nil {
		t.Fatalf("%v (the run said: %v)", openErr, err)
	}
	return r, err
}

func TestLaunchesAreInterleavedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &scripted{name: "a"}, &scripted{name: "b"}
		o := options(t, a, b)
		var said []string
		o.Progress = func(e run.Event) {
			if e.Kind == run.Launched {
				said = append(said, fmt.Sprintf("%s%d", e.Engine, e.Repetition))
			}
		}
		r, err := do(t, t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"}; !slices.Equal(said, want) {
			t.Errorf("order %v, want %v", said, want)
		}
		counted := 0
		for _, at := range r.Attempts {
			if at.Counted() {
				counted++
			}
			if len(at.Requests) != 2 || len(at.Measured()) != 1 || len(at.Measured()[0].Tokens) != 4 {
				t.Errorf("attempt %d: %+v", at.ID, at.Requests)
			}
			for _, p := range record.Phases() {
				if _, ok := at.Phase(p); !ok {
					t.Errorf("attempt %d has no phase %s", at.ID, p)
				}
			}
		}
		if counted != 6 || len(r.Attempts) != 8 || r.Status != record.OK || a.prepared != 1 {
			t.Errorf("%d attempts, %d counted, status %s, prepared %d times", len(r.Attempts), counted, r.Status,
				a.prepared)
		}
	})
}

func TestPhasesExcludeOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := do(t, t.Context(), options(t, &scripted{name: "a"}))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range r.Attempts {
			for i, p := range at.Phases[1:] {
				if p.BeginNS < at.Phases[i].EndNS {
					t.Errorf("%s begins before %s has ended", p.Name, at.Phases[i].Name)
				}
			}
		}
	})
}

func TestFailedLaunchIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scripted{name: "a", do: func(_ context.Context, launch int) error {
			if launch == 2 {
				return engine.Fail(record.DeviceLost, "the device was lost")
			}
			return nil
		}}
		r, err := do(t, t.Context(), options(t, a))
		if err == nil || fault.Of(err) != fault.Run || !strings.Contains(err.Error(), "the device was lost") {
			t.Errorf("the run says %v", err)
		}
		if got := r.Attempts[1]; got.Status != record.Failed || got.Class != record.DeviceLost || got.Counted() {
			t.Errorf("the failed attempt: %+v", got)
		}
		if len(r.Attempts) != 4 || !r.Attempts[3].Counted() || r.Status != record.Failed || a.open.Load() != 0 {
			t.Errorf("%d attempts, status %s, %d sessions open", len(r.Attempts), r.Status, a.open.Load())
		}
	})
}

func TestWhatAPersonMustMendEndsItsCellOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scripted{name: "a", do: func(
			context.Context, int) error {
			return fault.New(fault.NoAdapter, "", "no adapter")
		}}
		b := &scripted{name: "b"}
		r, err := do(t, t.Context(), options(t, a, b))
		if fault.Of(err) != fault.NoAdapter {
			t.Errorf("class %s for %v", fault.Of(err), err)
		}
		if a.launches != 1 || b.launches != 4 || r.Attempts[0].Class != record.SetUp {
			t.Errorf("a launched %d times, b %d times; class %s", a.launches, b.launches, r.Attempts[0].Class)
		}
	})
}

// outcomes gives each launch's error in turn; launches behind the last one succeed.
func outcomes(list ...error) func(context.Context, int) error {
	return func(_ context.Context, launch int) error {
		if launch > len(list) {
			return nil
		}
		return list[launch-1]
	}
}

func TestAFailedWarmupIsRepeatedOnce(t *testing.T) {
	unstarted := &engine.Failure{Class: record.Start, Err: fault.New(fault.NoChrome, "", "Chrome did not answer")}
	crash := engine.Fail(record.Crash, "it crashed")
	for _, x := range []struct {
		name     string
		launches []error
		attempts int
		counted  int
		code     fault.Kind
	}{
		{"crash", []error{crash}, 5, 3, ""},
		{"two crashes", []error{crash, crash}, 5, 3, fault.Run},
		{"no start", []error{unstarted}, 5, 3, ""},
		{"no start, twice", []error{unstarted, unstarted}, 2, 0, fault.NoChrome},
		{"no start of a launch that counts", []error{nil, unstarted}, 4, 2, fault.NoChrome},
		{"no start of two", []error{nil, unstarted, unstarted}, 3, 0, fault.NoChrome},
		{"a part is missing", []error{fault.New(fault.NoAdapter, "", "no adapter")}, 1, 0, fault.NoAdapter},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := do(t, t.Context(), options(t, &scripted{name: "a", do: outcomes(x.launches...)}))
				counted, warned := 0, false
				for _, a := range r.Attempts {
					if a.Counted() {
						counted++
					}
				}
				for _, w := range r.Warnings {
					warned = warned || w.Code == "warmup-repeated"
				}
				if fault.Of(err) != x.code || (err == nil) != (r.Status == record.OK) ||
					len(r.Attempts) != x.attempts || counted != x.counted {
					t.Errorf("class %s, status %s, %d attempts, %d counted; want %+v", fault.Of(err), r.Status,
						len(r.Attempts), counted, x)
				}
				if want := x.launches[0] != nil && x.attempts > 1; warned != want {
					t.Errorf("warned of a repeated warm-up: %v, want %v", warned, want)
				}
			})
		})
	}
}

func TestALaunchThatHangsIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scripted{name: "a", do: func(ctx context.Context, launch int) error {
			if launch > 2 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		r, err := do(t, t.Context(), options(t, a))
		if err == nil || r.Attempts[0].Class != record.Timeout || r.Attempts[0].Status != record.Failed ||
			len(r.Attempts) != 5 {
			t.Errorf("%v; first attempt %+v", err, r.Attempts[0])
		}
	})
}

func TestCancellingEndsTheRunAndLeavesAReadableRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		a := &scripted{name: "a", do: func(ctx context.Context, launch int) error {
			if launch == 2 {
				cancel(fault.New(fault.Interrupted, "", "interrupted"))
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
		r, err := do(t, ctx, options(t, a))
		if fault.Of(err) != fault.Interrupted {
			t.Errorf("class %s for %v", fault.Of(err), err)
		}
		if r.Status != record.Interrupted || len(r.Attempts) != 2 || r.Attempts[1].Status != record.Interrupted ||
			a.open.Load() != 0 {
			t.Errorf("status %s, %d attempts, %d sessions open", r.Status, len(r.Attempts), a.open.Load())
		}
	})
}

func TestAPanicClosesTheSession(t *testing.T) {
	a := &scripted{name: "a", do: func(context.Context, int) error { panic("bug") }}
	o := options(t, a)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = run.Do(t.Context(), o)
	}()
	if a.open.Load() != 0 {
		t.Error("a session stays open after a panic")
	}
}

func TestUnwritableFolderIsSaidBeforeAnythingStarts(t *testing.T) {
	a := &scripted{name: "a"}
	o := options(t, a)
	o.Out = "/dev/null/results"
	_, err := run.Do(t.Context(), o)
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Unwritable || a.launches != 0 {
		t.Errorf("%v after %d launches", err, a.launches)
	}
}

// served is a scripted engine that tells pieces of text, and has a cache of prompts.
type served struct {
	scripted
	prompts []string
}

func (e *served) Caps() engine.Caps {
	return engine.Caps{PromptCache: true, Requests: 1, Isolation: record.OfServer}
}

func (e *served) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	s, err := e.scripted.Open(ctx, p)
	return &servedSession{s.(*scriptedSession), e}, err
}

type servedSession struct {
	*scriptedSession
	engine *served
}

func (s *servedSession) Generate(_ context.Context, r engine.Request, token func(record.Token)) (record.Usage, error) {
	s.engine.prompts = append(s.engine.prompts, r.Prompt)
	token(record.Token{ID: record.NoID, At: time.Now()})
	return record.Usage{PromptTokens: 3, Sent: time.Now(), Finish: "stop", Generated: r.MaxTokens - r.MaxTokens/4}, nil
}

func TestWhatAnEngineCantDoIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &served{scripted: scripted{name: "a"}}
		o := options(t, e)
		o.Plan.Prompts, o.Plan.Repetitions, o.Plan.Warmup.Launches = []string{"one two three", "one"}, 1, 0
		o.Expected = map[string][]int{"one": {9}}
		r, err := do(t, t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"two three one", "one two three", "So one", "one"}; !slices.Equal(e.prompts, want) {
			t.Errorf("asked %q, want %q: nothing is measured whose prompt lies in the cache", e.prompts, want)
		}
		if c := r.Cells[0]; !c.StopsAtEnd || !c.NoTokenIDs || !c.Pieces || c.PromptCache != record.CacheOn ||
			c.Isolation != record.OfServer {
			t.Errorf("cell %+v", c)
		}
		if n := warned(r, 0, "length"); n != 1 { // of the warm-up's one token none was missing
			t.Errorf("%d warnings of the length: %+v", n, r.Attempts[0].Warnings)
		}
	})
}
