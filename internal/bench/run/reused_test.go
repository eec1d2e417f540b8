package run_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"llmparity/internal/bench/plan"
	"llmparity/internal/bench/run"
	"llmparity/internal/engine"
	"llmparity/internal/kit/fault"
	"llmparity/internal/record"
	"llmparity/internal/record/ran"
)

// telling is a scripted engine with a process that reports itself, and warns at its start and in every generation.
type telling struct {
	scripted
	version string // empty: 1
	others  []*telling
	most    int       // most sessions open at once, including those of others
	wants   string    // the device that it was asked for
	rows    []ran.Row // what it got of what else it was asked for, known when it has generated
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
	p.Event(record.Event{At: time.Now(), Device: &record.Device{Class: record.CPU, Name: "c", Asked: e.wants}})
	p.Event(record.Event{At: time.Now(), Text: "opened"})
	p.Warn(record.Warning{Code: "stands", Text: "of the session"})
	fmt.Fprintln(p.Log("engine"), "hello")
	return &tellingSession{s.(*scriptedSession), p, e.rows}, err
}

type tellingSession struct {
	*scriptedSession
	probe engine.Probe
	rows  []ran.Row // not yet reported
}

func (s *tellingSession) Generate(ctx context.Context, r engine.Request, token func(record.Token)) (
	record.Usage, error) {
	s.probe.Warn(record.Warning{Code: "once", Text: "of a generation"})
	if s.rows != nil {
		s.probe.Event(record.Event{At: time.Now(), Ran: s.rows})
		s.rows = nil
	}
	if r.MaxTokens > 1 {
		time.Sleep(time.Second)
	}
	return s.scriptedSession.Generate(ctx, r, token)
}

func reused(t *testing.T, engines ...engine.Engine) trial {
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

// What repetitions share decides the order of attempts and who opens the session. Every attempt is a complete record.
func TestIsolation(t *testing.T) {
	for _, c := range []struct{ isolation, order, made string }{
		{plan.OfLaunch, "", "1.0, 2.0, 3.0, 4.0, 1.1, 2.1, 3.1, 4.1, 1.2, 2.2, 3.2, 4.2"},
		{plan.OfLaunch, plan.Grouped, "1.0, 1.1, 1.2, 2.0, 2.1, 2.2, 3.0, 3.1, 3.2, 4.0, 4.1, 4.2"},
		{plan.Reused, "", "1.0, 1.1, 1.2<2, 2.0, 2.1, 2.2<5, 3.0, 3.1, 3.2<8, 4.0, 4.1, 4.2<11"},
		{plan.Shared, "", "1.0, 1.1, 3.1<2, 1.2<2, 3.2<2, 2.0, 2.1, 4.1<7, 2.2<7, 4.2<7"},
		{plan.Shared, plan.Grouped, "1.0, 1.1, 1.2<2, 3.1<2, 3.2<2, 2.0, 2.1, 2.2<7, 4.1<7, 4.2<7"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := &telling{scripted: scripted{name: "a"}}, &telling{scripted: scripted{name: "b"}}
			a.others, b.others = []*telling{b}, []*telling{a}
			o := options(t, a, b)
			o.Plan.Isolation, o.Plan.Order, o.Plan.Repetitions = c.isolation, c.order, 2
			o.Plan.Prompts, o.Plan.Check = plan.Texts("p", "q"), new(false)
			r := whole(t, o)
			if got := made(r); got != c.made {
				t.Errorf("%s %s: %s, want %s", c.isolation, c.order, got, c.made)
			}
			// An idle session would share pages with the next and lower its PSS.
			if a.most != 1 || b.most != 1 {
				t.Errorf("%s: %d and %d sessions at once", c.isolation, a.most, b.most)
			}
			for i, at := range r.Attempts {
				last := i+1 == len(r.Attempts) || r.Attempts[i+1].OpenedBy == 0
				complete(t, r, at, last)
			}
		})
	}
}

// complete checks an attempt of telling engines. last says that it is the last in its session.
func complete(t *testing.T, r *record.Run, a *record.Attempt, last bool) {
	t.Helper()
	c := r.Cells[a.Cell-1]
	want, codes := "measure", map[string]int{"stands": 1, "once": 1}
	if a.OpenedBy == 0 {
		want, codes["once"] = "baseline load warmup measure", 2 // the warm-up's too
	}
	if last || !c.Shared {
		want += " idle"
	}
	if last {
		want += " unload"
	}
	if phases(a) != want || len(a.Measured()) != 1 {
		t.Errorf("attempt %d: phases %q, want %q; %d requests", a.ID, phases(a), want, len(a.Measured()))
	}
	info, reported := a.Engine()
	if device, on := a.Device(); !reported || !on || info.Name != c.Engine || device.Name != "c" {
		t.Errorf("attempt %d does not say what ran: %+v", a.ID, a.Events)
	}
	for _, w := range a.Warnings {
		codes[w.Code]--
	}
	if codes["stands"] != 0 || codes["once"] != 0 {
		t.Errorf("attempt %d warns %v", a.ID, a.Warnings)
	}
	if len(a.Sources) != 1 || len(a.Samples) < 10 || a.Cost.Reads != len(a.Samples) {
		t.Errorf("attempt %d: %d readings of %v, %d have a cost", a.ID, len(a.Samples), a.Sources, a.Cost.Reads)
	}
	for _, s := range a.Samples {
		if s.NS < a.BeginNS || s.NS > a.EndNS {
			t.Errorf("attempt %d, from %d to %d, has a reading at %d", a.ID, a.BeginNS, a.EndNS, s.NS)
		}
	}
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
		for i, a := range r.Attempts { // the second attempt noticed it first
			if n := warned(r, i, "unanswered-source"); n != min(i, 1) {
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

func TestReusedRefusesProcessPerGeneration(t *testing.T) {
	a := &scripted{name: "once", caps: &engine.Caps{PerGeneration: true, Isolation: record.OfLaunch}}
	b := &scripted{name: "b"}
	dir, err := execute(t.Context(), reused(t, b, a))
	if fault.Of(err) != fault.Usage ||
		!strings.Contains(err.Error(), "once starts a process for each generation") || dir != "" {
		t.Errorf("%q, %v", dir, err)
	}
	if n := a.launches + b.launches + a.prepared + b.prepared; n != 0 {
		t.Errorf("%d launches or preparations", n)
	}
}
