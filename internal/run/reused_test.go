package run_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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

// telling is a scripted engine with a process that reports itself, and warns at its start and in every generation.
type telling struct {
	scripted
	version string // empty: 1
	others  []*telling
	most    int // most sessions open at once, including those of others
}

func (e *telling) Open(ctx context.Context, p engine.Probe) (engine.Session, error) {
	s, err := e.scripted.Open(ctx, p)
	open := int(e.open.Load())
	for _, o := range e.others {
		open += int(o.open.Load())
	}
	e.most = max(e.most, open)
	withRSS(still)(p)
	version := cmp.Or(e.version, "1")
	p.Event(record.Event{At: time.Now(), Engine: &record.EngineInfo{Name: e.name, Version: version,
		Parts: map[string]string{"browser": "C/" + version}}})
	p.Event(record.Event{At: time.Now(), Device: &record.Device{Class: record.CPU, Name: "c"}})
	p.Event(record.Event{At: time.Now(), Text: "opened"})
	p.Warn(record.Warning{Code: "stands", Text: "of the session"})
	fmt.Fprintln(p.Log("engine"), "hello")
	return &tellingSession{s.(*scriptedSession), p}, err
}

type tellingSession struct {
	*scriptedSession
	probe engine.Probe
}

func (s *tellingSession) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (
	record.Usage, error) {
	s.probe.Warn(record.Warning{Code: "once", Text: "of a generation"})
	if r.MaxTokens > 1 {
		time.Sleep(time.Second)
	}
	return s.scriptedSession.Generate(ctx, r, token)
}

func reused(t *testing.T, engines ...engine.Engine) run.Options {
	o := options(t, engines...)
	o.Plan.Isolation = plan.Reused
	return o
}

func phases(a *record.Attempt) string {
	var names []string
	for _, p := range a.Phases {
		names = append(names, string(p.Name))
	}
	return strings.Join(names, " ")
}

func TestRepetitionsReuseLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &telling{scripted: scripted{name: "a"}}, &telling{scripted: scripted{name: "b"}}
		r := whole(t, reused(t, a, b))
		if a.launches != 2 || b.launches != 2 || a.open.Load()+b.open.Load() != 0 || len(r.Attempts) != 8 {
			t.Errorf("%d and %d launches, %d sessions open, %d attempts", a.launches, b.launches,
				a.open.Load()+b.open.Load(), len(r.Attempts))
		}
		all := "baseline load warmup measure idle"
		for i, want := range []struct {
			cell, repetition, opener int
			phases                   string
		}{{1, 0, 0, all + " unload"}, {1, 1, 0, all}, {1, 2, 2, "measure idle"}, {1, 3, 2, "measure idle unload"},
			{2, 0, 0, all + " unload"}, {2, 1, 0, all}, {2, 2, 6, "measure idle"},
			{2, 3, 6, "measure idle unload"}} {
			at := r.Attempts[i]
			if at.Cell != want.cell || at.Repetition != want.repetition || at.OpenedBy != want.opener ||
				phases(at) != want.phases || at.Status != record.OK {
				t.Errorf("attempt %d: repetition %d, opened by %d, phases %q, %s %s; want %+v", at.ID, at.Repetition,
					at.OpenedBy, phases(at), at.Status, at.Error, want)
			}
			if c := r.Cells[at.Cell-1]; len(at.Measured()) != 1 || !c.Reused || c.Isolation != record.OfLaunch {
				t.Errorf("attempt %d: %d requests, cell %+v", at.ID, len(at.Measured()), r.Cells[at.Cell-1])
			}
		}
	})
}

func TestReusedRepetitionsAreCompleteRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := whole(t, reused(t, &telling{scripted: scripted{name: "a"}}, &telling{scripted: scripted{name: "b"}}))
		for _, a := range r.Attempts {
			info, reported := a.Engine()
			device, on := a.Device()
			if !reported || !on || info.Name != r.Cells[a.Cell-1].Engine || device.Name != "c" {
				t.Errorf("attempt %d does not say what ran: %+v", a.ID, a.Events)
			}
			once := 1
			if a.OpenedBy == 0 {
				once = 2 // the warm-up's too
			}
			codes := map[string]int{}
			for _, w := range a.Warnings {
				codes[w.Code]++
			}
			if !maps.Equal(codes, map[string]int{"stands": 1, "once": once}) {
				t.Errorf("attempt %d warns %v", a.ID, codes)
			}
			if len(a.Sources) != 1 {
				t.Errorf("attempt %d has the sources %v", a.ID, a.Sources)
			}
			if n := a.Cost.Reads; n != len(a.Samples) {
				t.Errorf("attempt %d: %d reads have a cost, %d are recorded", a.ID, n, len(a.Samples))
			}
			if len(a.Samples) < 10 {
				t.Errorf("attempt %d has %d readings", a.ID, len(a.Samples))
			}
			for _, s := range a.Samples {
				if s.NS < a.BeginNS || s.NS > a.EndNS {
					t.Errorf("attempt %d, from %d to %d, has a reading at %d",
						a.ID, a.BeginNS, a.EndNS, s.NS)
				}
			}
		}
	})
}

// late is a source whose reads take long or time out.
type late struct {
	takes atomic.Int64 // a time.Duration
	reads int
}

func (*late) Describe() record.Source {
	return record.Source{Role: "page", Method: "slow", Every: 700 * time.Millisecond, Waits: true}
}

func (l *late) Read(ctx context.Context, r *record.Sample) error {
	l.reads++
	r.Begin = time.Now()
	r.Values = []record.Value{{Name: "a_count", Value: 1}}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(l.takes.Load())):
	}
	r.End = time.Now()
	return ctx.Err()
}

func TestSamplerWarningsHoldForLaterRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var source late
		e := &telling{scripted: scripted{name: "a", opened: func(p engine.Probe) { p.Attach(&source) }}}
		generations := 0
		e.do = func(context.Context, int) error {
			if generations++; generations == 2 {
				source.takes.Store(int64(time.Hour))
			}
			return nil
		}
		o := reused(t, e)
		o.Plan.Warmup.Launches = 0
		r := whole(t, o)
		for _, a := range r.Attempts[1:] { // the second attempt noticed it first
			n := 0
			for _, w := range a.Warnings {
				if w.Code == "unanswered-source" {
					n++
				}
			}
			if n != 1 {
				t.Errorf("attempt %d warns %d times: %v", a.ID, n, a.Warnings)
			}
		}
	})
}

func TestRepetitionDropsEarlierReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var source late
		e := &telling{scripted: scripted{name: "a", opened: func(p engine.Probe) { p.Attach(&source) }}}
		source.takes.Store(int64(2500 * time.Millisecond))
		o := reused(t, e)
		o.Progress = func(e run.Event) {
			if e.Kind == run.Launched {
				time.Sleep(time.Second) // between two repetitions
			}
		}
		o.Plan.Warmup.Launches, o.Plan.Repetitions = 0, 5
		r := whole(t, o)
		kept := 0
		for _, a := range r.Attempts {
			kept += len(a.Metrics)
			for _, m := range a.Metrics {
				if m.NS-m.ReadNS < a.BeginNS {
					t.Errorf("attempt %d began at %d and has a reading from %d to %d", a.ID, a.BeginNS, m.NS-m.ReadNS,
						m.NS)
				}
			}
		}
		if kept == 0 || kept == source.reads {
			t.Errorf("%d of %d readings were kept; want some, but not all", kept, source.reads)
		}
	})
}

// After any failure the next attempt opens a new session.
func TestFailureEndsReusedSession(t *testing.T) {
	for name, c := range map[string]struct {
		options func(*testing.T, ...engine.Engine) run.Options
		ends    func(context.CancelCauseFunc) func(context.Context) error
		class   record.Class
		openers []int
	}{
		"a crash": {reused, func(context.CancelCauseFunc) func(context.Context) error { return crashes }, record.Crash,
			[]int{0, 0, 2, 0, 4}},
		"a timeout": {reused, func(context.CancelCauseFunc) func(context.Context) error { return hangs },
			record.Timeout, []int{0, 0, 2, 0, 4}},
		"an interruption": {reused, interrupts, record.Cancelled, []int{0, 0, 2}},
		"a crash in a launch that cells share": {shared,
			func(context.CancelCauseFunc) func(context.Context) error { return crashes }, record.Crash,
			[]int{0, 0, 2, 0, 4, 4, 4}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			a := &telling{scripted: scripted{name: "a", do: at(3, c.ends(cancel))}} // the warm-up launch is the first
			o := c.options(t, a)
			if o.Plan.Isolation == plan.Reused {
				o.Plan.Repetitions = 4
			}
			r, err := do(t, ctx, o)
			var openers []int
			launches := 0
			for _, at := range r.Attempts {
				if openers = append(openers, at.OpenedBy); at.OpenedBy == 0 {
					launches++
				}
			}
			if err == nil || a.launches != launches || a.open.Load() != 0 || !slices.Equal(openers, c.openers) ||
				r.Attempts[2].Class != c.class || len(openers) > 3 && !r.Attempts[3].Counted() {
				t.Errorf("%s: %v; %d launches, %d open, opened by %v, %+v", name, err, a.launches, a.open.Load(),
					openers, r.Attempts[2])
			}
			cancel(nil)
		})
	}
}

// An idle session would share pages with the next and lower its PSS.
func TestReusedSessionsAreOpenOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &telling{scripted: scripted{name: "a"}}, &telling{scripted: scripted{name: "b"}}
		a.others, b.others = []*telling{b}, []*telling{a}
		o := reused(t, a, b)
		o.Plan.Prompts, o.Plan.Warmup.Launches = plan.Texts("p", "q"), 0
		var said []string
		o.Progress = func(e run.Event) {
			if e.Kind == run.Launched {
				said = append(said, fmt.Sprintf("%s%d %d/%d", e.Engine, e.Repetition, e.Launch, e.Launches))
			}
		}
		r, err := do(t, t.Context(), o)
		if err != nil || a.most != 1 || b.most != 1 || a.launches != 2 || b.launches != 2 {
			t.Errorf("%v; %d and %d sessions at once, %d and %d launches", err, a.most, b.most, a.launches, b.launches)
		}
		if want := []string{"a1 1/12", "a2 2/12", "a3 3/12", "b1 4/12", "b2 5/12", "b3 6/12", "a1 7/12"}; !slices.Equal(
			said[:7], want) {
			t.Errorf("order %v, want %v first", said, want)
		}
		if c := r.Cells[r.Attempts[6].Cell-1]; c.Prompt != "q" {
			t.Errorf("the second prompt is %q", c.Prompt)
		}
	})
}

func TestReusedRefusesProcessPerGeneration(t *testing.T) {
	a := &scripted{name: "once", caps: &engine.Caps{PerGeneration: true, Isolation: record.OfLaunch}}
	b := &scripted{name: "b"}
	dir, err := run.Do(t.Context(), reused(t, b, a))
	if fault.Of(err) != fault.Usage ||
		!strings.Contains(err.Error(), "once starts a process for each generation") || dir != "" {
		t.Errorf("%q, %v", dir, err)
	}
	if n := a.launches + b.launches + a.prepared + b.prepared; n != 0 {
		t.Errorf("%d launches or preparations", n)
	}
}
